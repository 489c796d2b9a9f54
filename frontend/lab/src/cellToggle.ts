/** The button that turns the active cell into a %%gpu cell and back. */

import { CodeCell, ICellModel, ICodeCellModel } from '@jupyterlab/cells';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ISignal, Signal } from '@lumino/signaling';

import { CellLines } from './cellLines.js';
import { isGpuCell } from './gpuLine.js';

/** End the step that would be undone next: what Yjs is told within half a second is one step else. */
function beginUndoStep(shared: object): void {
  (shared as { undoManager?: { stopCapturing(): void } | null }).undoManager?.stopCapturing();
}

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
    let lines = this.lines.get(cell.model);
    if (lines === undefined) {
      const made = (lines = new CellLines());
      this.lines.set(cell.model, made);
      shared.changed.connect(() => made.follow(shared.getSource())); // also while another cell is the active one
    }
    const edit = lines.press(shared.getSource());
    beginUndoStep(shared);
    shared.updateSource(edit.start, edit.end, edit.text);
    beginUndoStep(shared);
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
  /** What stood above the cells in which the button was pressed. */
  private readonly lines = new WeakMap<ICodeCellModel, CellLines>();
}
