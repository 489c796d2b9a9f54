// Projects in the order of their tree: each after the one that it is in.

export interface Placed {
  name: string;
  /** In how many others it is. */
  depth: number;
}

/** Order names as a tree, those in the same project as they came; what has no place in it, as in a circle, comes last. */
export function inTree(names: string[], parentOf: (name: string) => string): Placed[] {
  const inside = new Map<string, string[]>();
  for (const name of names) {
    const parent = names.includes(parentOf(name)) ? parentOf(name) : "";
    inside.set(parent, [...(inside.get(parent) ?? []), name]);
  }
  const below = (parent: string, depth: number): Placed[] => (inside.get(parent) ?? []).flatMap((name) => [{ name, depth }, ...below(name, depth + 1)]);
  const placed = below("", 0);
  const missing = names.filter((name) => !placed.some((one) => one.name === name));
  return [...placed, ...missing.map((name) => ({ name, depth: 0 }))];
}
