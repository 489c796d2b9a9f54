/** The button that turns the active cell into a %%gpu cell and back. */

import { CodeCell, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISignal, Signal } from '@lumino/signaling';

import { isGpuCell, lineOf, toggle } from './gpuLine.js';

export class CellToggle {
  constructor(private readonly tracker: INotebookTracker) {
    tracker.activeCellChanged.connect(this.follow, this);
    this.follow();
  }

  /** The answer of `isOn` or `isPossible` may be another. */
  get changed(): ISignal<this, void> {
    return this.changedSignal;
  }

  /** Whether there is a cell that could run on the pool, and that can be changed. */
  get isPossible(): boolean {
    const cell = this.tracker.activeCell;
    return cell instanceof CodeCell && !cell.readOnly;
  }

  get isOn(): boolean {
    const cell = this.tracker.activeCell;
    return cell instanceof CodeCell && isGpuCell(cell.model.sharedModel.getSource());
  }

  /** Change the cell as an edit that can be undone. What was taken away, with its options, comes back with the next press. */
  press(): void {
    const cell = this.tracker.activeCell;
    if (!(cell instanceof CodeCell) || cell.readOnly) {
      return;
    }
    const shared = cell.model.sharedModel;
    const source = shared.getSource();
    const wasOn = isGpuCell(source);
    const edit = toggle(source, this.gpuLines.get(cell.model), this.otherLines.get(cell.model));
    (wasOn ? this.gpuLines : this.otherLines).set(cell.model, lineOf(source) ?? '');
    shared.updateSource(edit.start, edit.end, edit.text);
  }

  private follow(): void {
    this.followed?.sharedModel.changed.disconnect(this.tell, this);
    const model = this.tracker.activeCell?.model ?? null;
    this.followed = model;
    model?.sharedModel.changed.connect(this.tell, this);
    this.wasOn = this.isOn;
    this.changedSignal.emit();
  }

  /** Say so where it matters: a key that is pressed in the cell is no news by itself. */
  private tell(): void {
    if (this.isOn !== this.wasOn) {
      this.wasOn = this.isOn;
      this.changedSignal.emit();
    }
  }

  private wasOn = false;

  private readonly changedSignal = new Signal<this, void>(this);

  private followed: ICellModel | null = null;
  /** What stood above a cell while it was one of %%gpu, and while it was none: empty, or %%remote and the like. */
  private readonly gpuLines = new WeakMap<ICodeCellModel, string>();
  private readonly otherLines = new WeakMap<ICodeCellModel, string>();
}
