import assert from 'node:assert/strict';
import { test } from 'node:test';

import { RenewalPace } from '../src/renewal_pace';

const MINUTE = 60_000;

/** The minutes at which a page goes to the hub that asks the service every two seconds for so long. */
function tries(pace, minutes, why) {
  const found = [];
  for (let now = 0; now <= minutes * MINUTE; now += 2_000) {
    if (!pace.mayTry(now)) continue;
    found.push(now / MINUTE);
    pace.fail(why, now);
  }
  return found;
}

test('a page whose reader the hub does not know goes there rarely, and ever more so', () => {
  assert.deepEqual(tries(new RenewalPace(), 91, 'refused'), [0, 1, 3, 7, 15, 31, 61, 91]);
});

test('a hub that is starting is asked sooner', () => {
  const found = tries(new RenewalPace(), 10, 'away');
  assert.ok(found[1] <= 0.1 && found.length < 10, found.join());
});

test('who comes back to the page is logged in again at once, but not as often as they look', () => {
  const pace = new RenewalPace();
  tries(pace, 40, 'refused'); // the last was at 31
  assert.ok(!pace.mayTry(40 * MINUTE));
  pace.see();
  assert.ok(pace.mayTry(40 * MINUTE));
  pace.fail('refused', 40 * MINUTE);
  pace.see();
  assert.ok(!pace.mayTry(40 * MINUTE + 1_000));
  assert.ok(pace.mayTry(40 * MINUTE + 5_000));
});

test('looking at a page whose login has not failed changes nothing', () => {
  const pace = new RenewalPace();
  pace.see();
  assert.ok(pace.mayTry(0));
});

test('only failures count: a login that worked may be renewed at once when it is lost again', () => {
  const pace = new RenewalPace();
  pace.fail('refused', 0);
  pace.fail('refused', MINUTE);
  pace.succeed();
  assert.ok(pace.mayTry(MINUTE));
  pace.fail('refused', MINUTE);
  assert.ok(pace.mayTry(2 * MINUTE));
});
