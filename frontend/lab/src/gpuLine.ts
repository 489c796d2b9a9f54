/** The first line of a cell that runs on the pool: what it is made of, put above a cell and taken away. */

/** The magics that say where a whole cell runs. */
const FIRST_LINE = /^[ \t]*(%%(?:gpu|GPU|remote|cpu))(?=[ \t]|$)(.*)$/m;
const OPTION = /(--[a-z][a-z-]*)|("[^"]*"|'[^']*')|(#.*$)/g;

export type Part = 'magic' | 'option' | 'value' | 'comment';

export interface Span {
  from: number;
  to: number;
  part: Part;
}

/** A change of a cell's text: what stands from `start` to `end` becomes `text`. */
export interface Edit {
  start: number;
  end: number;
  text: string;
}

/** Find the first line that says something, where it is one of ours. */
function findLine(source: string): { start: number; end: number; line: string } | null {
  const start = source.length - source.replace(/^\s*\n/, '').length;
  const stop = source.indexOf('\n', start);
  const end = stop < 0 ? source.length : stop;
  const line = source.slice(start, end).replace(/\r$/, '');
  return FIRST_LINE.test(line) ? { start, end, line } : null;
}

/** Whether the cell is one that `%%gpu` sends to the pool. */
export function isGpuCell(source: string): boolean {
  const found = findLine(source);
  return found !== null && /^[ \t]*%%(gpu|GPU)\b/.test(found.line);
}

/** The line of a %%gpu cell, to be put back later with its options; null where there is none. */
export function gpuLineOf(source: string): string | null {
  return isGpuCell(source) ? (findLine(source)?.line.trim() ?? null) : null;
}

/** Turn a cell into a %%gpu cell, or a %%gpu cell into an ordinary one. `line` is what to put above it. */
export function toggle(source: string, line = '%%gpu'): Edit {
  const found = findLine(source);
  if (found === null) {
    return { start: 0, end: 0, text: `${line}\n` };
  }
  if (!isGpuCell(source)) {
    return { start: found.start, end: found.end, text: line }; // %%cpu and %%remote say another place
  }
  return { start: 0, end: Math.min(found.end + 1, source.length), text: '' };
}

/** What to highlight: the magic, its options and their quoted values, in the order in which they stand. */
export function highlight(source: string): Span[] {
  const found = findLine(source);
  const match = found === null ? null : FIRST_LINE.exec(found.line);
  if (found === null || match === null) {
    return [];
  }
  const magic = match[1] ?? '';
  const from = found.start + found.line.indexOf(magic);
  const rest = from + magic.length;
  const spans: Span[] = [{ from, to: rest, part: 'magic' }];
  for (const one of (match[2] ?? '').matchAll(OPTION)) {
    const part: Part = one[1] !== undefined ? 'option' : one[2] !== undefined ? 'value' : 'comment';
    spans.push({ from: rest + one.index, to: rest + one.index + one[0].length, part });
  }
  return spans;
}
