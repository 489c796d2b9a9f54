import assert from 'node:assert/strict';
import { test } from 'node:test';

globalThis.document = { baseURI: 'http://hub/services/bulletin/me', addEventListener: () => {} };
const { goesOn } = await import('../src/troubles');

test('a page goes on by itself unless all that is wrong was refused for good', () => {
  const away = { sentence: 'The pool does not answer.', isFinal: false };
  const refused = { sentence: "There is no project 'nosuch'.", isFinal: true };
  assert.ok(goesOn([away]));
  assert.ok(goesOn([refused, away]));
  assert.ok(!goesOn([refused]));
  assert.ok(!goesOn([]));
});
