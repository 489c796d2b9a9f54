import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CellLines } from '../lib/cellLines.js';

/** A cell, its button, and who types in it. */
class Cell {
  constructor(source) {
    this.source = source;
    this.lines = new CellLines();
  }

  press() {
    const { start, end, text } = this.lines.press(this.source);
    return this.type(this.source.slice(0, start) + text + this.source.slice(end));
  }

  type(source) {
    this.source = source;
    this.lines.follow(source);
    return source;
  }
}

test('the button brings back what it has replaced, also where options were typed behind its %%gpu', () => {
  const cell = new Cell('%%remote --cpus 4\nx');
  assert.equal(cell.press(), '%%gpu\nx');
  assert.equal(cell.press(), '%%remote --cpus 4\nx');
  cell.press();
  cell.type('%%gpu --gpus 2\nx');
  cell.type('%%gpu --gpus 2\nx + 1');
  assert.equal(cell.press(), '%%remote --cpus 4\nx + 1');
  assert.equal(cell.press(), '%%gpu --gpus 2\nx + 1');
});

test('a %%gpu that was typed by hand is taken away, whatever the button replaced before', () => {
  const cell = new Cell('%%remote --cpus 4\nx');
  cell.press();
  cell.type('x');
  cell.type('%%gpu\nx');
  assert.equal(cell.press(), 'x');
  assert.equal(cell.press(), '%%gpu\nx');
  assert.equal(cell.press(), 'x');
});
