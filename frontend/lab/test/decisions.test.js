import assert from 'node:assert/strict';
import { test } from 'node:test';

import { DecisionFollower } from '../lib/decisions.js';
import { nextAsk, HIDDEN } from '../lib/pacing.js';
import { NOTHING } from '../lib/view.js';

const there = { ...NOTHING, pool: 'there' };
const decided = (id, is_granted = true) => ({ id, title: `lea decided ${id}`, sentence: 'Until Friday.', is_granted });
const play = (...views) => {
  const follower = new DecisionFollower();
  return views.flatMap(view => follower.step({ ...there, ...view }));
};

test('a decision is told once, and well only where it is granted', () => {
  const told = play({}, { decided: [decided('a')] }, { decided: [decided('b', false), decided('a')] });
  assert.deepEqual(
    told.map(one => [one.title, one.isWell]),
    [['lea decided a', true], ['lea decided b', false]]
  );
});

test('what was decided before anybody looked is no news, nor is it after a pool that was away', () => {
  const known = { decided: [decided('a')] };
  assert.deepEqual(play({ pool: 'away' }, known, { pool: 'away' }, known), []);
});

test('a decision that is listed again, since a later one has gone, is no news', () => {
  const told = play({}, { decided: [decided('a')] }, { decided: [decided('b')] }, { decided: [decided('a')] });
  assert.deepEqual(told.map(one => one.lease), ['a', 'b']);
});

test('a page that nobody sees asks on while its user waits for a decision', () => {
  assert.equal(nextAsk({ ...there, awaits_decision: true }, true, false, 0), HIDDEN);
  assert.equal(nextAsk(there, true, false, 0), null);
});
