/** What stood above one cell, so that the button brings it back: knows no browser. */

import { Edit, isGpuCell, lineOf, toggle } from './gpuLine.js';

export class CellLines {
  /** Take in a press of the button: what changes in this text of the cell. */
  press(source: string): Edit {
    const edit = toggle(source, this.gpuLine, this.replaced);
    if (isGpuCell(source)) {
      this.gpuLine = lineOf(source) ?? undefined;
    } else {
      this.replaced = lineOf(source) ?? '';
    }
    return edit;
  }

  /** Take in what the cell's text is now: without the line that a press has put there, what stood instead is over, too. */
  follow(source: string): void {
    if (!isGpuCell(source)) {
      this.replaced = '';
    }
  }

  /** The %%gpu line that a press took away, with its options. */
  private gpuLine: string | undefined;
  /** What a press has put %%gpu in the place of, as %%remote; empty where nothing stood there. */
  private replaced = '';
}
