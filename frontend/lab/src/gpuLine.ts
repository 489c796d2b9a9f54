/** The first line of a cell that runs on the pool: what it is made of, put above a cell and taken away. */

/** The magics that say where a whole cell runs. */
const FIRST_LINE = /^[ \t]*(%%(?:gpu|GPU|remote|cpu))(?=[ \t]|$)(.*)$/m;
/** Magics that IPython runs in the notebook, and what is below them as a cell: a magic of ours may be the first of it. */
const AROUND = /^[ \t]*%%(?:time|timeit|capture|prun)(?=[ \t\r]|$)/;
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

interface Found {
  start: number;
  end: number;
  line: string;
  /** Whether a magic stands above it that times the cell, or takes its outputs. */
  isInside: boolean;
}

/** Find the first line that says something, where it is one of ours; below `%%time` and the like, the line after. */
function findLine(source: string): Found | null {
  let start = source.length - source.replace(/^\s*\n/, '').length;
  for (let isInside = false; ; isInside = true) {
    const stop = source.indexOf('\n', start);
    const end = stop < 0 ? source.length : stop;
    const line = source.slice(start, end).replace(/\r$/, '');
    if (FIRST_LINE.test(line)) {
      return { start, end, line, isInside };
    }
    if (stop < 0 || !AROUND.test(line)) {
      return null;
    }
    start = stop + 1;
  }
}

/** Whether the cell is one that `%%gpu` sends to the pool. */
export function isGpuCell(source: string): boolean {
  const found = findLine(source);
  return found !== null && /^[ \t]*%%(gpu|GPU)\b/.test(found.line);
}

/** The line that says where the cell runs, to be put back later with its options; null where there is none. */
export function lineOf(source: string): string | null {
  return findLine(source)?.line.trim() ?? null;
}

/**
 * Turn a cell into a %%gpu cell, or a %%gpu cell into what it was before. `line` is what to put above it, and `before`
 * what stood there instead, as %%remote; empty where nothing did.
 */
export function toggle(source: string, line = '%%gpu', before = ''): Edit {
  const found = findLine(source);
  if (found === null) {
    return { start: 0, end: 0, text: `${line}\n` };
  }
  if (!isGpuCell(source)) {
    return { start: found.start, end: found.end, text: line }; // %%cpu and %%remote say another place
  }
  if (before !== '') {
    return { start: found.start, end: found.end, text: before };
  }
  return { start: found.isInside ? found.start : 0, end: Math.min(found.end + 1, source.length), text: '' };
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
