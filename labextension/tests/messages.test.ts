/**
 * The messages of a session: pages and events put together.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  EMPTY_LOG,
  Log,
  applyDelta,
  applyEarlier,
  applyMessage,
  applyNewest,
  restart,
  trim
} from '../src/session/messages';
import { ids, message, numbered, page, part, tool } from './talk';

const textOf = (log: Log, at: number) => log.messages[at].parts[0].text;
const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value));

test('a page, then the one before it, in order and without doubles', () => {
  let log = applyNewest(EMPTY_LOG, page([message('m3'), message('m2'), message('m3')], 'c'));
  assert.deepEqual([ids(log), log.next], [['m2', 'm3'], 'c']);
  log = applyEarlier(log, page([message('m0'), message('m1'), message('m2')], null));
  assert.deepEqual([ids(log), log.next], [['m0', 'm1', 'm2', 'm3'], null]);
});

test('what did not change keeps its identity, part by part', () => {
  const first = message('m1', [
    part('p1', { text: 'a' }),
    tool('p2', 'bash', 'running', { input: { command: 'ls' } })
  ]);
  const log = applyNewest(EMPTY_LOG, page([first, message('m2')]));
  const again = applyNewest(restart(log), copy(page([first, message('m2')])));
  assert.equal(again.messages, log.messages);
  const changed = copy(first);
  changed.parts[1].state!.status = 'completed';
  const next = applyMessage(log, changed);
  assert.notEqual(next.messages[0], log.messages[0]);
  assert.equal(next.messages[0].info, log.messages[0].info);
  assert.equal(next.messages[0].parts[0], log.messages[0].parts[0]);
  assert.equal(next.messages[0].parts[1].state!.input, log.messages[0].parts[1].state!.input);
  assert.equal(next.messages[1], log.messages[1]);
  assert.equal(applyMessage(next, copy(changed)).messages, next.messages);
});

test('deltas grow the text of a told message; other messages stay the same objects', () => {
  let log = applyNewest(EMPTY_LOG, page([message('m1')]));
  log = applyMessage(log, message('m2', [part('p', { text: 'ab' })]));
  const next = applyDelta(log, { message_id: 'm2', part_id: 'p', field: 'text', delta: 'cd' });
  assert.equal(textOf(next, 1), 'abcd');
  assert.equal(next.messages[0], log.messages[0]);
  assert.equal(textOf(log, 1), 'ab');
});

test('a page that was read meanwhile neither doubles nor takes away streamed text', () => {
  let log = applyMessage(EMPTY_LOG, message('m1', [part('p', { text: 'ab' })]));
  log = applyDelta(log, { message_id: 'm1', part_id: 'p', field: 'text', delta: 'cd' });
  for (const text of ['', 'ab', 'abcdef']) {
    const next = applyNewest(log, page([message('m1', [part('p', { text })])]));
    assert.equal(textOf(next, 0), 'abcd');
    const grown = applyDelta(next, { message_id: 'm1', part_id: 'p', field: 'text', delta: 'ef' });
    assert.equal(textOf(grown, 0), 'abcdef');
  }
});

test('deltas of what is not known yet wait for it, and go when it is told whole', () => {
  let log = applyDelta(EMPTY_LOG, { message_id: 'm1', part_id: 'p', field: 'text', delta: 'x' });
  log = applyDelta(log, { message_id: 'm1', part_id: 'p', field: 'text', delta: 'y' });
  assert.deepEqual([log.messages.length, log.early.length, log.unsure.has('m1')], [0, 1, true]);
  const told = applyMessage(log, message('m1', [part('p', { text: 'xy' })]));
  assert.deepEqual([textOf(told, 0), told.early.length, told.unsure.size], ['xy', 0, 0]);
  const read = applyNewest(log, page([message('m1', [part('p', { text: '' })])]));
  assert.deepEqual([textOf(read, 0), read.unsure.has('m1')], ['xy', true]);
});

test('late deltas of a part that a page has whole are not added again', () => {
  let log = applyNewest(
    EMPTY_LOG,
    page([message('m1', [part('p', { text: 'all', time: { start: 1, end: 2 } })])])
  );
  log = applyDelta(log, { message_id: 'm1', part_id: 'p', field: 'text', delta: 'll' });
  assert.equal(textOf(log, 0), 'all');
});

test('text that was streamed and is not written down yet survives a reconnect', () => {
  let log = applyMessage(EMPTY_LOG, message('m1', [part('p', { text: 'abc', time: { start: 1 } })]));
  log = applyNewest(restart(log), page([message('m1', [part('p', { text: '', time: { start: 1 } })])]));
  assert.equal(textOf(log, 0), 'abc');
  log = applyNewest(
    restart(log),
    page([message('m1', [part('p', { text: 'other', time: { start: 1, end: 2 } })])])
  );
  assert.equal(textOf(log, 0), 'other');
});

test('after a gap: what is gone is gone, what is new is there, what is older stays', () => {
  let log = applyNewest(EMPTY_LOG, page(numbered(10, 20), 'c10'));
  log = applyEarlier(log, page(numbered(0, 10), null));
  const fetched = numbered(12, 22).filter(({ info }) => info.id !== 'm0015');
  log = applyNewest(restart(log), page(fetched, 'c12'));
  assert.equal(ids(log).includes('m0015'), false);
  assert.deepEqual([ids(log)[0], ids(log).length, log.next], ['m0000', 21, null]);
});

test('after a long gap there is no hole: the older ones are read again', () => {
  let log = applyNewest(EMPTY_LOG, page(numbered(0, 10), 'c0'));
  log = applyNewest(restart(log), page(numbered(50, 60), 'c50'));
  assert.deepEqual([ids(log)[0], log.messages.length, log.next], ['m0050', 10, 'c50']);
});

test('a message older than the window does not come in alone, and a removed one does not come back', () => {
  let log = applyNewest(EMPTY_LOG, page(numbered(10, 12), 'c'));
  assert.equal(applyMessage(log, message('m0001')), log);
  log = applyMessage(log, message('m0099'));
  log = applyNewest(log, page(numbered(10, 12), 'c'));
  assert.deepEqual(ids(log), ['m0010', 'm0011', 'm0099']);
  log = applyNewest(restart(log), page(numbered(10, 12), 'c'));
  assert.deepEqual(ids(log), ['m0010', 'm0011']);
});

test('the oldest are let go, and can be asked for again', () => {
  const log = trim(applyNewest(EMPTY_LOG, page(numbered(0, 500))), 300);
  assert.deepEqual([log.messages.length, log.next], [300, 'm0200']);
  assert.equal(trim(log, 300), log);
});

test('odd messages and fields change nothing', () => {
  const log = applyNewest(EMPTY_LOG, page([null, {}, { info: {} }, message('m1', [part('p')])] as any));
  assert.deepEqual(ids(log), ['m1']);
  for (const odd of [null, undefined, {}, { info: { id: 3 }, parts: [] }, { info: { id: 'x' } }]) {
    assert.equal(applyMessage(log, odd as any), log);
  }
  for (const field of ['id', 'type', 'sessionID', 'messageID']) {
    assert.equal(
      applyDelta(log, { message_id: 'm1', part_id: 'p', field, delta: 'x' }).messages,
      log.messages
    );
  }
  const grown = applyDelta(log, { message_id: 'm1', part_id: 'p', field: '__proto__', delta: 'x' });
  assert.equal(Object.getPrototypeOf(grown.messages[0].parts[0]), Object.prototype);
});
