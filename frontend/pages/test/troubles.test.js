import assert from 'node:assert/strict';
import { test } from 'node:test';

globalThis.document = { baseURI: 'http://hub/services/bulletin/me', addEventListener: () => {} };
const { goesOn, isLong } = await import('../src/troubles');

test('a page goes on by itself unless all that is wrong was refused for good', () => {
  const away = { sentence: 'The pool does not answer.', isFinal: false };
  const refused = { sentence: "There is no project 'nosuch'.", isFinal: true };
  assert.ok(goesOn([away]));
  assert.ok(goesOn([refused, away]));
  assert.ok(!goesOn([refused]));
  assert.ok(!goesOn([]));
});

test('whoever has waited for longer than a start takes is told whom to ask, unless it is for nothing', () => {
  const away = { sentence: 'The service does not answer.', isFinal: false, asOfMs: 0 };
  assert.ok(!isLong([away], 179_000));
  assert.ok(isLong([away], 181_000));
  assert.ok(!isLong([{ ...away, isFinal: true }], 181_000));
  assert.ok(!isLong([{ ...away, asOfMs: undefined }], 181_000));
});
