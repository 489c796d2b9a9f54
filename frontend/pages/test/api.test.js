import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';

// What a browser has: a page with its token, and the service behind it, which knows the tokens that it has given.
const page = { xsrf: 'first', page: 'me', user: 'ada' };
const service = { token: 'first', visits: 0, isSessionOver: false, held: [] };
globalThis.document = { baseURI: 'http://hub/services/bulletin/me', body: { dataset: page }, addEventListener: () => {} };
globalThis.location = { href: 'http://hub/services/bulletin/me' };
globalThis.DOMParser = class {
  parseFromString(text) {
    return { body: { dataset: JSON.parse(text) } };
  }
};
globalThis.fetch = async (url, { headers, method }) => {
  if (url === location.href) {
    service.visits += 1;
    return { status: 200, text: async () => JSON.stringify({ ...page, xsrf: service.token }) };
  }
  const isKnown = headers['X-XSRFToken'] === service.token;
  if (!isKnown && method === 'POST') await new Promise((answer) => service.held.push(answer));
  if (isKnown) return { ok: true, status: 200, json: async () => ({ done: method }) };
  const problem = { code: 'not-allowed', sentence: 'Log in.', is_logged_out: true, is_session_over: service.isSessionOver };
  return { ok: false, status: 403, json: async () => problem };
};
const { ask } = await import('../src/api');

beforeEach(() => {
  Object.assign(service, { token: page.xsrf, visits: 0, isSessionOver: false, held: [] });
});

test('a call that is refused after the login was renewed for another is sent again with the new one', async () => {
  service.token = 'second';
  const late = ask('/cells/1/cancel', 'POST');
  assert.deepEqual(await ask('/me'), { done: 'GET' });
  service.held.forEach((answer) => answer());
  assert.deepEqual(await late, { done: 'POST' });
  assert.equal(service.visits, 1);
});

test('a service that is started again twice in a row is gone on with twice', async () => {
  for (const token of ['third', 'fourth']) {
    service.token = token;
    assert.deepEqual(await ask('/me'), { done: 'GET' });
  }
  assert.equal(service.visits, 2);
});

test('who has logged out of the hub is not logged in again', async () => {
  service.token = 'fifth';
  service.isSessionOver = true;
  await assert.rejects(ask('/me'), { message: 'You are logged out.' });
  assert.equal(service.visits, 0);
  service.isSessionOver = false; // they have logged in again elsewhere
  assert.deepEqual(await ask('/me'), { done: 'GET' });
});
