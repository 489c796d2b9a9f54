// The quota file's JSON schema as a form sees it: tables of named things, and settings with what each means.

export interface Kind {
  $ref?: string;
  type?: string | string[];
  description?: string;
  enum?: string[];
  examples?: Value[];
  const?: string;
  anyOf?: Kind[];
  items?: Kind;
  properties?: Record<string, Kind>;
  additionalProperties?: Kind | boolean;
  $defs?: Record<string, Kind>;
}

export type Value = string | number | boolean | string[] | null;
export type Path = string[];

/** The name under which a setting is kept; no name of a setting has this letter in it. */
export const keyOf = (path: readonly string[]) => path.join("\u0001");
export const pathOf = (key: string): Path => key.split("\u0001");

/** The tables of the file in their order: what is in each, and whether its things have names. */
export const TABLES: { name: string; title: string; one: string; isNamed: boolean }[] = [
  { name: "projects", title: "Projects", one: "project", isNamed: true },
  { name: "group_rules", title: "Rules for groups", one: "rule", isNamed: true },
  { name: "reservations", title: "Reservations", one: "reservation", isNamed: true },
  { name: "qos", title: "Classes of service", one: "class of service", isNamed: true },
  { name: "node_pools", title: "Node pools", one: "node pool", isNamed: true },
  { name: "prices", title: "Prices", one: "price", isNamed: true },
  { name: "scheduler", title: "Scheduler", one: "", isNamed: false },
];

export function follow(schema: Kind, kind: Kind): Kind {
  const name = kind.$ref?.split("/").pop();
  return name ? { ...schema.$defs?.[name], ...kind } : kind;
}

/** What may stand at a path; undefined where nothing may. */
export function kindAt(schema: Kind, path: Path): Kind | undefined {
  let kind: Kind | undefined = schema;
  for (const name of path) {
    if (!kind) return undefined;
    kind = follow(schema, kind);
    const inside: Kind | undefined = kind.properties?.[name];
    const other: Kind | undefined = typeof kind.additionalProperties === "object" ? kind.additionalProperties : undefined;
    kind = inside ?? other;
  }
  return kind && follow(schema, kind);
}

export const isTable = (kind: Kind) => Boolean(kind.properties) || typeof kind.additionalProperties === "object";

/** Take off the quotes around a text, as the file has them. */
const unquoted = (text: string) => text.trim().replace(/^"([^"]*)"$|^'([^']*)'$/, "$1$2").trim();

/** The parts of a list: a comma inside of quotes parts nothing. */
const partsOf = (list: string) => list.match(/\s*(?:"[^"]*"|'[^']*')\s*(?=,|$)|[^,]+/g) ?? [];

/** What people type, as the file has it: numbers and lists as such, all else as text. */
export function readValue(kind: Kind, typed: string): Value {
  const text = unquoted(typed);
  const kinds = [kind, ...(kind.anyOf ?? [])];
  const has = (type: string) => kinds.some((one) => one.type === type);
  if (has("boolean")) return text === "true";
  if (has("array")) return partsOf(typed.trim().replace(/^\[(.*)\]$/s, "$1")).map(unquoted).filter(Boolean);
  // What is larger is no exact number here: it goes as it was typed, and is refused at its field.
  const isNumber = text !== "" && Math.abs(Number(text)) <= Number.MAX_SAFE_INTEGER;
  if ((has("number") || has("integer")) && isNumber) return Number(text);
  return text;
}

/** List what is set of each thing inside a path, as "guaranteed 2"; not in which project it is, which its place shows. */
export function settingsInside(values: Record<string, Value | undefined>, path: Path): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const [key, value] of Object.entries(values)) {
    const [name, setting, ...deeper] = pathOf(key).slice(path.length);
    const isInside = key.startsWith(`${keyOf(path)}\u0001`) && name !== undefined;
    if (!isInside || !setting || setting === "parent" || deeper.length > 0 || showValue(value) === "") continue;
    found.set(name, [...(found.get(name) ?? []), `${setting} ${showValue(value)}`]);
  }
  return found;
}

/** Say in an empty field that nothing is set, and what could be. */
export function showUnset(kind: Kind): string {
  const example = showValue(kind.examples?.[0]);
  return example ? `not set (such as ${example})` : "not set";
}

export function showValue(value: Value | undefined): string {
  if (value === undefined || value === null) return "";
  if (!Array.isArray(value)) return String(value);
  return value.map((one) => (one.includes(",") ? `"${one}"` : one)).join(", ");
}
