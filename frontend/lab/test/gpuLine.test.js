import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lineOf, highlight, isGpuCell, toggle } from '../lib/gpuLine.js';

const apply = (source, line, before) => {
  const { start, end, text } = toggle(source, line, before);
  return source.slice(0, start) + text + source.slice(end);
};
const parts = source => highlight(source).map(({ from, to, part }) => [source.slice(from, to), part]);

test('a cell becomes a %%gpu cell and, pressed again, what it was', () => {
  for (const source of ['x = 1', '', 'x = 1\ny = 2\n', '%%time\nx = 1', '# %%gpu is not the first line\nx']) {
    assert.equal(apply(source), `%%gpu\n${source}`);
    assert.equal(apply(apply(source)), source);
  }
});

test('options go with the line, and come back with it', () => {
  const source = '%%gpu --gpus 2 --time "2 h"\ntrain()';
  const line = lineOf(source);
  assert.equal(apply(source), 'train()');
  assert.equal(apply('train()', line), source);
});

test('a cell of which only the line is there becomes empty', () => {
  assert.equal(apply('%%gpu'), '');
  assert.equal(apply('%%gpu\n'), '');
});

test('empty lines above the magic are no other first line, as IPython has it', () => {
  assert.equal(isGpuCell('\n\n  %%gpu\nx'), true);
  assert.equal(apply('\n\n%%gpu\nx'), 'x');
});

test('a cell that says another place says this one then', () => {
  assert.equal(apply('%%cpu\nx'), '%%gpu\nx');
  assert.equal(apply('%%remote --time 1h\nx'), '%%gpu\nx');
});

test('a cell that said another place says it again when it is no %%gpu cell any more', () => {
  const line = lineOf('%%remote --time 1h\nx');
  assert.equal(apply('%%gpu\nx', '%%gpu', line), '%%remote --time 1h\nx');
});

test('a magic that times a cell, or takes its outputs, may stand above ours', () => {
  for (const above of ['%%time', '%%timeit -n 2', '%%capture out', '%%time\n%%capture']) {
    const source = `${above}\n%%gpu --gpus 2\nx`;
    assert.equal(isGpuCell(source), true);
    assert.equal(lineOf(source), '%%gpu --gpus 2');
    assert.equal(apply(source), `${above}\nx`);
    assert.equal(parts(source)[0][0], '%%gpu');
  }
});

test('what only looks like the magic is none', () => {
  for (const source of ['%%gpus\nx', '%gpu\nx', 'a %%gpu', "'%%gpu'", '%%gpu-thing', 'x\n%%gpu\ny', '%%bash\n%%gpu', '%%time']) {
    assert.equal(isGpuCell(source), false, source);
    assert.deepEqual(highlight(source), [], source);
  }
});

test('lines that end as on Windows are lines', () => {
  assert.equal(lineOf('%%gpu --gpus 2\r\nx'), '%%gpu --gpus 2');
  assert.equal(apply('%%gpu --gpus 2\r\nx'), 'x');
});

test('the magic, options, quoted values and remarks are told apart', () => {
  assert.deepEqual(parts('%%gpu --time "2 h" --gpus 2 # big --run\nx = "--no"'), [
    ['%%gpu', 'magic'],
    ['--time', 'option'],
    ['"2 h"', 'value'],
    ['--gpus', 'option'],
    ['# big --run', 'comment']
  ]);
  assert.deepEqual(parts('\n %%remote --label x'), [
    ['%%remote', 'magic'],
    ['--label', 'option']
  ]);
});

test('spans are in order and inside the text, whatever is typed', () => {
  let seed = 7;
  const letters = '%gpu -"\'#\n\tx';
  for (let round = 0; round < 3000; round += 1) {
    let source = '%%gpu';
    for (let i = 0; i < 20; i += 1) {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      source += letters[seed % letters.length];
    }
    let last = 0;
    for (const { from, to } of highlight(source)) {
      assert.ok(from >= last && to > from && to <= source.length, JSON.stringify(source));
      last = to;
    }
  }
});
