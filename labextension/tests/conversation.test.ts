/**
 * A session's conversation: pages and events put together, and what is drawn of them.
 */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Api } from '../src/api';
import { ApiError } from '../src/errors';
import { OcmanModel } from '../src/model';
import { Message, MessageInfo, MessagePage, Part } from '../src/records';
import { excerpt, pieces, PIECE, slices } from '../src/session/chunks';
import { Conversation, DRAWN_AFTER, MOST_KEPT, PAGE } from '../src/session/conversation';
import { Entry, entriesOf } from '../src/session/entries';
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
import { NO_QUEUE } from '../src/session/prompts';
import { TODOS_AFTER } from '../src/session/todos';
import { fullPath, lastLine, localPath, plain, toolSubject, took } from '../src/session/words';
import { key, session, snapshot } from './records';

const trans = { __: (text: string, ...args: unknown[]) => text.replace(/%(\d)/g, (_, n) => String(args[n - 1])) } as any;

function part(id: string, facts: Partial<Part> = {}): Part {
  return { id, messageID: 'm', sessionID: 'a', type: 'text', ...facts };
}

function message(id: string, parts: Part[] = [], facts: Partial<MessageInfo> = {}): Message {
  return { info: { id, sessionID: 'a', role: 'assistant', time: { created: 1 }, ...facts }, parts };
}

function prompt(id: string, text = id): Message {
  return message(id, [part(`${id}p`, { text })], { role: 'user' });
}

function tool(id: string, name: string, status: string, facts: object = {}): Part {
  return part(id, { type: 'tool', tool: name, state: { status, ...facts } as any });
}

const done = { created: 1, completed: 2 };
const page = (messages: Message[], next: string | null = null): MessagePage => ({ messages, next });
const ids = (log: { messages: readonly Message[] }) => log.messages.map(({ info }) => info.id);
const textOf = (log: Log, at: number) => log.messages[at].parts[0].text;
const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => message(`m${String(from + i).padStart(4, '0')}`, [], { time: done }));
const copy = <T>(value: T): T => JSON.parse(JSON.stringify(value));

// --- messages ------------------------------------------------------------------------------------

test('a page, then the one before it, in order and without doubles', () => {
  let log = applyNewest(EMPTY_LOG, page([message('m3'), message('m2'), message('m3')], 'c'));
  assert.deepEqual([ids(log), log.next], [['m2', 'm3'], 'c']);
  log = applyEarlier(log, page([message('m0'), message('m1'), message('m2')], null));
  assert.deepEqual([ids(log), log.next], [['m0', 'm1', 'm2', 'm3'], null]);
});

test('what did not change keeps its identity, part by part', () => {
  const first = message('m1', [part('p1', { text: 'a' }), tool('p2', 'bash', 'running', { input: { command: 'ls' } })]);
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
  let log = applyNewest(EMPTY_LOG, page([message('m1', [part('p', { text: 'all', time: { start: 1, end: 2 } })])]));
  log = applyDelta(log, { message_id: 'm1', part_id: 'p', field: 'text', delta: 'll' });
  assert.equal(textOf(log, 0), 'all');
});

test('text that was streamed and is not written down yet survives a reconnect', () => {
  let log = applyMessage(EMPTY_LOG, message('m1', [part('p', { text: 'abc', time: { start: 1 } })]));
  log = applyNewest(restart(log), page([message('m1', [part('p', { text: '', time: { start: 1 } })])]));
  assert.equal(textOf(log, 0), 'abc');
  log = applyNewest(restart(log), page([message('m1', [part('p', { text: 'other', time: { start: 1, end: 2 } })])]));
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
    assert.equal(applyDelta(log, { message_id: 'm1', part_id: 'p', field, delta: 'x' }).messages, log.messages);
  }
  const grown = applyDelta(log, { message_id: 'm1', part_id: 'p', field: '__proto__', delta: 'x' });
  assert.equal(Object.getPrototypeOf(grown.messages[0].parts[0]), Object.prototype);
});

// --- entries -------------------------------------------------------------------------------------

const calm = { queued: NO_QUEUE, isBusy: false };
const kinds = (entries: readonly Entry[]) => entries.map(({ kind }) => kind);

test('reads in a row are one line, also over messages; an error or another tool ends it', () => {
  const entries = entriesOf(
    [
      prompt('m0'),
      message('m1', [tool('t1', 'read', 'completed')]),
      message('m2', [part('s', { type: 'step-start' }), tool('t2', 'read', 'completed'), tool('t3', 'read', 'running')]),
      message('m3', [tool('t4', 'read', 'error'), tool('t5', 'read', 'completed'), tool('t6', 'bash', 'completed')])
    ],
    calm
  );
  assert.deepEqual(kinds(entries), ['prompt', 'reads', 'tool', 'tool', 'tool']);
  assert.deepEqual([entries[1].key, (entries[1] as any).parts.length], ['t1', 3]);
});

test('entries that say the same are the same objects', () => {
  const messages = [
    prompt('m0'),
    message('m1', [tool('t1', 'read', 'completed'), tool('t2', 'read', 'completed'), part('p', { text: 'x' })])
  ];
  const before = entriesOf(messages, calm);
  assert.equal(entriesOf([...messages], calm, before), before);
  const grown = { ...messages[1], parts: [...messages[1].parts.slice(0, 2), part('p', { text: 'xy' })] };
  const after = entriesOf([messages[0], grown], calm, before);
  assert.deepEqual(
    after.map((entry, i) => entry === before[i]),
    [true, true, false]
  );
});

test('a turn ends with what it cost, once it is over', () => {
  const facts = { cost: 0.01, tokens: { input: 100, output: 20, reasoning: 3 }, modelID: 'big' };
  const messages = [
    prompt('m0'),
    message('m1', [part('p1', { text: 'x' })], { ...facts, time: { created: 1000, completed: 2000 } }),
    message('m2', [part('p2', { text: 'y' })], { ...facts, time: { created: 2000, completed: 5000 } })
  ];
  const last = [...entriesOf(messages, calm)].pop() as any;
  assert.deepEqual([last.kind, last.cost, last.tokens, last.milliseconds, last.model], ['turn', 0.02, 246, 4000, 'big']);
  assert.deepEqual(kinds(entriesOf(messages, { ...calm, isBusy: true })), ['prompt', 'text', 'text']);
  const next = entriesOf([...messages, prompt('m3')], { ...calm, isBusy: true });
  assert.deepEqual(kinds(next), ['prompt', 'text', 'text', 'turn', 'prompt']);
});

test('errors, stops, thoughts, shortening; what nobody wrote is not shown', () => {
  const entries = entriesOf(
    [
      message('m0', [part('a', { text: 'system', synthetic: true })], { role: 'user' }),
      message('m1', [part('b', { type: 'compaction' })], { role: 'user' }),
      message('m2', [part('c', { text: 'so far' })], { summary: true } as any),
      message('m3', [part('d', { type: 'reasoning', text: 'hm' }), part('e', { text: '  ' })], {
        error: { name: 'MessageAbortedError', data: { message: 'x' } }
      }),
      message('m4', [], { error: { name: 'APIError', data: { message: 'no' } } })
    ],
    calm
  );
  assert.deepEqual(kinds(entries), ['mark', 'summary', 'reasoning', 'mark', 'error']);
  assert.equal((entries[4] as any).last, true);
});

// --- texts ---------------------------------------------------------------------------------------

test('pieces are the text, and earlier ones stay as they are while it grows', () => {
  const paragraph = 'word '.repeat(200).trim();
  const code = '```py\n' + 'x = 1\n\n'.repeat(800) + '```';
  const text = [...Array(6).fill(paragraph), code, ...Array(6).fill(paragraph), '- a', '', '- b'].join('\n\n');
  const all = pieces(text);
  assert.equal(all.join(''), text);
  assert.ok(all.length > 3);
  assert.equal(all.filter(piece => piece.includes('```')).length, 1);
  for (let end = 1; end < text.length; end += 97) {
    const some = pieces(text.slice(0, end));
    assert.deepEqual(some.slice(0, -1), all.slice(0, some.length - 1));
  }
  assert.deepEqual(pieces(''), []);
  assert.deepEqual(pieces('x'.repeat(PIECE * 3)), ['x'.repeat(PIECE * 3)]);
});

test('long output is cut at lines, and never through a character', () => {
  const text = Array.from({ length: 1000 }, (_, i) => `line ${i}`).join('\n');
  assert.equal(slices(text, 500).join(''), text);
  assert.ok(slices(text, 500).every(slice => slice.length <= 500));
  assert.equal(excerpt(text, 'tail', 2, 8000), 'line 998\nline 999');
  assert.equal(excerpt(text, 'head', 2, 8000), 'line 0\nline 1\n');
  assert.equal(excerpt('a\nb\n', 'tail', 1, 10), 'b\n');
  const faces = '😀'.repeat(100);
  assert.equal(slices(faces, 7).join(''), faces);
  assert.ok(slices(faces, 7).every(slice => [...slice].every(one => one === '😀')));
  assert.equal(excerpt(faces, 'tail', 5, 3), '😀');
  assert.equal(excerpt(faces, 'head', 5, 3), '😀');
  assert.equal(excerpt('', 'tail', 5, 3), '');
});

test('words: paths, durations, subjects, and what terminals understand', () => {
  assert.equal(localPath('/r/w/src/a.py', '/r/w'), 'src/a.py');
  assert.equal(localPath('/r/wide/a.py', '/r/w'), '/r/wide/a.py');
  assert.equal(fullPath('src/a.py', '/r/w/'), '/r/w/src/a.py');
  assert.deepEqual(
    [10, 850, 3210, 59_960, 125_000, 3_720_000].map(ms => took(ms, trans)),
    ['', '0.8 s', '3.2 s', '1 min 0 s', '2 min 5 s', '1 h 2 min']
  );
  assert.equal(plain('\u001b[31mred\u001b[0m\u0007\r\n'), 'red\n');
  assert.equal(lastLine('a\n\u001b[32mb 50%\rb 60%\n\n'), 'b 60%');
  assert.equal(toolSubject(tool('t', 'bash', 'running', { input: { command: 'ls\n -l', description: 'x' } }), ''), 'ls -l');
  assert.equal(toolSubject(tool('t', 'read', 'running', { input: { filePath: '/r/w/a' } }), '/r/w'), 'a');
  assert.equal(toolSubject(tool('t', 'odd', 'pending'), '/r/w'), '');
});

// --- the class -----------------------------------------------------------------------------------

class FakeSocket {
  onmessage: ((event: any) => void) | null = null;
  onclose: ((event: any) => void) | null = null;
  sent: any[] = [];
  send(data: string): void {
    this.sent.push(JSON.parse(data));
  }
  close(): void {}
  get(type: string, data: object): void {
    this.onmessage?.({ data: JSON.stringify({ type, host: 'local', data }) });
  }
}

type Answers = Partial<Record<keyof Api, (...args: any[]) => unknown>>;

/** A live page with the session `a`, and a clock that stands still. */
async function open(answers: Answers = {}, facts = {}) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  const calls: [string, unknown[]][] = [];
  const sockets: FakeSocket[] = [];
  const all: Answers = { messages: () => page([]), todos: () => [], ...answers };
  const api = new Proxy({} as Api, {
    get: (_, name: keyof Api) =>
      name === 'openEvents'
        ? () => sockets[sockets.push(new FakeSocket()) - 1]
        : async (...args: unknown[]) => {
            calls.push([name, args]);
            return all[name]?.(...args);
          }
  });
  const model = new OcmanModel({ api, pageVersion: '1' });
  model.start();
  const sessions = [session('a', facts)];
  const socket = () => sockets[sockets.length - 1];
  socket().get('snapshot', snapshot({ sessions }));
  const conversation = new Conversation(model, key('a'));
  await settle();
  const count = (name: string) => calls.filter(([called]) => called === name).length;
  return { model, conversation, calls, count, socket, all };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) {
    await Promise.resolve();
  }
}

async function tick(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settle();
}

function check(name: string, body: () => Promise<void>): void {
  test(name, async () => {
    try {
      await body();
    } finally {
      mock.timers.reset();
    }
  });
}

const updated = (one: Message) => ({ session_id: 'a', message: one });
const delta = (text: string, message_id = 'm1', part_id = 'p') => ({
  session_id: 'a',
  message_id,
  part_id,
  field: 'text',
  delta: text
});

check('it watches its session, reads the newest page, and stops watching when it goes', async () => {
  const { model, conversation, calls, socket } = await open({ messages: () => page([prompt('m1')], 'c') });
  assert.deepEqual(calls.find(([name]) => name === 'messages')![1], ['a', { limit: PAGE, host: 'local' }]);
  assert.deepEqual(socket().sent.pop(), { subscribe: { sessions: ['a'] } });
  assert.deepEqual(
    [ids(conversation), conversation.hasEarlier, conversation.isLoading, conversation.session?.id],
    [['m1'], true, false, 'a']
  );
  conversation.dispose();
  assert.deepEqual(socket().sent.pop(), { subscribe: { sessions: [] } });
  socket().get('message.updated', updated(message('m2')));
  await tick(100);
  assert.deepEqual(ids(conversation), ['m1']);
  model.dispose();
});

check('many deltas are one change', async () => {
  const { conversation, socket } = await open();
  socket().get('message.updated', updated(message('m1', [part('p', { text: '' })])));
  await tick(DRAWN_AFTER);
  let told = 0;
  conversation.changed.connect(() => (told += 1));
  for (let i = 0; i < 500; i++) {
    socket().get('message.delta', delta('x'));
  }
  socket().get('message.delta', { ...delta('no'), session_id: 'b' });
  await tick(DRAWN_AFTER);
  assert.deepEqual([told, conversation.messages[0].parts[0].text], [1, 'x'.repeat(500)]);
  conversation.dispose();
});

check('what comes while a page is read is neither lost nor doubled', async () => {
  let answer: (page: MessagePage) => void = () => undefined;
  const { conversation, socket } = await open({ messages: () => new Promise(resolve => (answer = resolve)) });
  assert.ok(conversation.isLoading);
  socket().get('message.updated', updated(message('m1', [part('p', { text: 'a' })])));
  socket().get('message.delta', delta('b'));
  answer(page([prompt('m0'), message('m1', [part('p', { text: 'ab' })])]));
  await settle();
  socket().get('message.delta', delta('c'));
  await tick(DRAWN_AFTER);
  assert.deepEqual([ids(conversation), conversation.messages[1].parts[0].text], [['m0', 'm1'], 'abc']);
  conversation.dispose();
});

check('after a reconnect it reads again, and an older answer does not win', async () => {
  const pages: ((page: MessagePage) => void)[] = [];
  const { conversation, socket, model } = await open({
    messages: () => new Promise(resolve => pages.push(resolve))
  });
  socket().onclose?.({});
  await settle();
  model.retry();
  socket().get('snapshot', snapshot({ sessions: [session('a')] }));
  await settle();
  assert.equal(pages.length, 2);
  pages[1](page([message('new')]));
  await settle();
  pages[0](page([message('old')]));
  await settle();
  assert.deepEqual([ids(conversation), conversation.isLoading], [['new'], false]);
  conversation.dispose();
});

check('a snapshot on the same connection is a gap too', async () => {
  const { conversation, socket, count } = await open();
  socket().get('snapshot', snapshot({ sessions: [session('a')] }));
  await settle();
  assert.equal(count('messages'), 2);
  conversation.dispose();
});

check('earlier messages: once at a time, and a failure can be tried again', async () => {
  let fail = true;
  const { conversation, count } = await open({
    messages: (_, { before }) => {
      if (before && fail) {
        throw ApiError.unreachable();
      }
      return before ? page([prompt('m0')]) : page([prompt('m1')], 'c');
    }
  });
  void conversation.loadEarlier();
  await conversation.loadEarlier();
  await settle();
  assert.deepEqual([count('messages'), conversation.actionError?.code], [2, 'server_unreachable']);
  fail = false;
  await conversation.loadEarlier();
  assert.deepEqual(
    [ids(conversation), conversation.hasEarlier, conversation.actionError],
    [['m0', 'm1'], false, null]
  );
  await conversation.loadEarlier();
  assert.equal(count('messages'), 3);
  conversation.dispose();
});

check('the oldest go while the reader is at the end, and stay while they are read', async () => {
  const { conversation, socket } = await open({ messages: () => page(numbered(0, MOST_KEPT)) });
  conversation.isFollowed = false;
  socket().get('message.updated', updated(message('m0900')));
  await tick(DRAWN_AFTER);
  assert.equal(conversation.messages.length, MOST_KEPT + 1);
  conversation.isFollowed = true;
  socket().get('message.updated', updated(message('m0901')));
  await tick(DRAWN_AFTER);
  assert.ok(conversation.messages.length < MOST_KEPT);
  assert.ok(conversation.hasEarlier);
  conversation.dispose();
});

check('todos: read at first, once after several writes, and when the turn ends', async () => {
  let todos = [{ content: 'x', status: 'pending', priority: 'low' }];
  const { conversation, socket, count } = await open({ todos: () => todos }, { status: 'busy' });
  assert.deepEqual([conversation.todos.length, count('todos')], [1, 1]);
  todos = [...todos, ...todos];
  for (const id of ['t1', 't2']) {
    socket().get('message.updated', updated(message('m1', [tool(id, 'todowrite', 'completed')])));
    await tick(DRAWN_AFTER);
  }
  socket().get('message.updated', updated(message('m1', [tool('t2', 'todowrite', 'completed')])));
  await tick(TODOS_AFTER);
  await tick(TODOS_AFTER);
  assert.deepEqual([conversation.todos.length, count('todos')], [2, 2]);
  socket().get('session.status', { id: 'a', directory: '/r/w', status: 'idle' });
  await tick(100);
  assert.equal(count('todos'), 3);
  conversation.dispose();
});

check('prompts behind a running step are queued until it takes them', async () => {
  const { conversation, socket } = await open({}, { status: 'busy' });
  const told = async (...all: Message[]) => {
    all.forEach(one => socket().get('message.updated', updated(one)));
    await tick(DRAWN_AFTER);
    return [...conversation.queued];
  };
  assert.deepEqual(await told(prompt('m1')), []);
  assert.deepEqual(await told(message('m2', [], { parentID: 'm1' } as any), prompt('m3')), ['m3']);
  const queued = conversation.queued;
  assert.deepEqual(await told(message('m2', [part('x', { text: 'y' })], { parentID: 'm1' } as any)), ['m3']);
  assert.equal(conversation.queued, queued);
  assert.deepEqual(await told(message('m2', [], { parentID: 'm1', time: done } as any)), []);
  conversation.dispose();
});

check('text that may lack its beginning is read again when the turn ends', async () => {
  const { conversation, socket, count, all } = await open(
    { messages: () => page([message('m1', [part('p', { text: '' })])]) },
    { status: 'busy' }
  );
  socket().get('message.delta', delta('end'));
  await tick(DRAWN_AFTER);
  assert.equal(conversation.messages[0].parts[0].text, 'end');
  const ended = { text: 'beginning and end', time: { start: 1, end: 2 } };
  all.messages = () => page([message('m1', [part('p', ended)], { time: done })]);
  socket().get('session.status', { id: 'a', directory: '/r/w', status: 'idle' });
  await tick(100);
  assert.deepEqual([count('messages'), conversation.messages[0].parts[0].text], [2, 'beginning and end']);
  conversation.dispose();
});

check('no OpenCode runs: it can be started, and is read then', async () => {
  let runs = false;
  const { conversation, calls } = await open({
    messages: () => {
      if (!runs) {
        throw new ApiError('opencode_unreachable', 'none');
      }
      return page([prompt('m1')]);
    },
    ensure: () => (runs = true)
  });
  assert.deepEqual([conversation.error?.code, conversation.isLoaded], ['opencode_unreachable', false]);
  await conversation.start();
  assert.deepEqual(calls.find(([name]) => name === 'ensure')![1], ['/r', 'local']);
  assert.deepEqual([conversation.error, ids(conversation)], [null, ['m1']]);
  conversation.dispose();
});

check('a failed read keeps what is there', async () => {
  const { conversation, all } = await open({ messages: () => page([prompt('m1')]) });
  all.messages = () => {
    throw ApiError.unreachable();
  };
  await conversation.load();
  assert.deepEqual([ids(conversation), conversation.error?.code], [['m1'], 'server_unreachable']);
  conversation.dispose();
});

check("a subagent's session is in nobody's list: it is asked for, followed and stopped by itself", async () => {
  const { model, socket, count } = await open({ session: () => session('child', { status: 'busy' }) });
  const child = new Conversation(model, key('child'));
  await settle();
  assert.equal(child.session?.status, 'busy');
  await child.abort();
  assert.equal(count('abortSession'), 1);
  socket().get('session.status', { id: 'child', directory: '/r/w', status: 'idle' });
  await tick(100);
  assert.equal(child.session?.status, 'idle');
  child.dispose();
});

check('a deleted session is told as such', async () => {
  const { conversation, socket } = await open({ messages: () => page([prompt('m1')]) });
  socket().get('session.removed', { id: 'a', directory: '/r/w' });
  await tick(100);
  assert.deepEqual([conversation.isRemoved, ids(conversation), conversation.session?.id], [true, ['m1'], 'a']);
  conversation.dispose();
});

check('the last prompt is sent again with its agent and model', async () => {
  const sent = message('m1', [part('p', { text: 'do it' }), part('s', { text: 'hidden', synthetic: true })], {
    role: 'user',
    agent: 'plan',
    model: { providerID: 'x', modelID: 'y' }
  });
  const { conversation, calls } = await open({ messages: () => page([sent, message('m2')]) });
  await conversation.resend();
  assert.deepEqual(calls.find(([name]) => name === 'prompt')![1], [
    'a',
    { text: 'do it', agent: 'plan', model: 'x/y' },
    'local'
  ]);
  conversation.dispose();
});
