import assert from 'node:assert/strict';
import { test } from 'node:test';

import { keyOf, readValue, settingsInside, showValue } from '../src/quota_schema';

const names = { anyOf: [{ type: 'array', items: { type: 'string' } }, { type: 'null' }] };

test('a list may be typed as the file has it: with quotes around each name, and brackets around all', () => {
  for (const typed of ['ann, bob', '"ann", "bob"', "'ann', 'bob'", '["ann", "bob"]', ' [ ann , "bob", ] ', '["ann", "bob",]']) {
    assert.deepEqual(readValue(names, typed), ['ann', 'bob'], typed);
  }
  assert.deepEqual(readValue(names, '"ann"'), ['ann']);
  for (const typed of ['', '[]', '[ ]']) assert.deepEqual(readValue(names, typed), [], typed);
});

test('a comma or a bracket inside quotes is part of a name', () => {
  assert.deepEqual(readValue(names, '"Ann, of maths", bob'), ['Ann, of maths', 'bob']);
  assert.deepEqual(readValue(names, '["a]", "[b"]'), ['a]', '[b']);
  assert.deepEqual(readValue(names, 'course-[0-9]'), ['course-[0-9]']);
  assert.deepEqual(readValue(names, "o'hara, d'arc"), ["o'hara", "d'arc"]);
});

test('what is shown of a list is read as the same list', () => {
  for (const list of [['ann', 'bob'], ['Ann, of maths', 'bob'], ["o'hara"], []]) {
    assert.deepEqual(readValue(names, showValue(list)), list);
  }
});

test('quotes around a text go, and numbers are numbers', () => {
  const text = { anyOf: [{ type: 'number' }, { type: 'string' }] };
  assert.equal(readValue(text, '"4h"'), '4h');
  assert.equal(readValue(text, "'4h'"), '4h');
  assert.equal(readValue(text, ' 2.5 '), 2.5);
  assert.equal(readValue(text, '20000000000000000000'), '20000000000000000000');
  assert.equal(readValue({ type: 'string' }, '"'), '"');
});

test('what is set of each project is told in a line, without what its place shows, what is deeper and what is taken out', () => {
  const values = Object.fromEntries(
    [
      [['projects', 'ml', 'guaranteed'], 3],
      [['projects', 'ml', 'leads'], ['liz', 'ada']],
      [['projects', 'ml', 'class_hours', 'lab', 'guaranteed'], 8],
      [['projects', 'vision', 'parent'], 'ml'],
      [['projects', 'vision', 'limit'], null],
      [['qos', 'ml', 'walltime'], '1 h'],
    ].map(([path, value]) => [keyOf(path), value]),
  );
  assert.deepEqual([...settingsInside(values, ['projects'])], [['ml', ['guaranteed 3', 'leads liz, ada']]]);
});
