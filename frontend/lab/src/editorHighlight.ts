/** %%gpu lines in the editor: the magic and its options stand out from code. */

import { EditorState, Extension, RangeSetBuilder, StateField } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView } from '@codemirror/view';

import { highlight, Part } from './gpuLine.js';

const MARKS: Record<Part, Decoration> = {
  magic: Decoration.mark({ class: 'bulletin-magic' }),
  option: Decoration.mark({ class: 'bulletin-option' }),
  value: Decoration.mark({ class: 'bulletin-value' }),
  comment: Decoration.mark({ class: 'bulletin-comment' })
};
/** So much of a cell is looked at: the line stands at its beginning. */
const HEAD = 2_000;

function decorate(state: EditorState): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const span of highlight(state.sliceDoc(0, HEAD))) {
    builder.add(span.from, span.to, MARKS[span.part]);
  }
  return builder.finish();
}

const field = StateField.define<DecorationSet>({
  create: decorate,
  update: (marks, change) => (change.docChanged ? decorate(change.state) : marks),
  provide: marks => EditorView.decorations.from(marks)
});

export const gpuLineHighlight: Extension = field;
