/**
 * A conversation that follows its session: what it reads, when, and what it tells.
 */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { Api } from '../src/api';
import { ApiError } from '../src/errors';
import { OcmanModel } from '../src/model';
import { Message, MessagePage } from '../src/records';
import { Conversation, DRAWN_AFTER, MOST_KEPT, PAGE } from '../src/session/conversation';
import { TODOS_AFTER } from '../src/session/todos';
import { key, session, snapshot } from './records';
import { done, ids, message, numbered, page, part, prompt, tool } from './talk';
import { check, settle } from './timing';

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

async function tick(ms: number): Promise<void> {
  mock.timers.tick(ms);
  await settle();
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

check(
  "a subagent's session is in nobody's list: it is asked for, followed and stopped by itself",
  async () => {
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
  }
);

check('a deleted session is told as such', async () => {
  const { conversation, socket } = await open({ messages: () => page([prompt('m1')]) });
  socket().get('session.removed', { id: 'a', directory: '/r/w' });
  await tick(100);
  assert.deepEqual(
    [conversation.isRemoved, ids(conversation), conversation.session?.id],
    [true, ['m1'], 'a']
  );
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

check('what the model waits for is told, also while nothing else changes', async () => {
  const { conversation, socket } = await open({}, { status: 'busy' });
  const told = async (retry: object | null) => {
    socket().get('session.status', { id: 'a', directory: '/r/w', status: 'busy', retry });
    await tick(100);
    return conversation.session?.retry?.attempt;
  };
  assert.equal(await told({ attempt: 2, message: '429', at: null }), 2);
  assert.equal(await told({ attempt: 3, message: '429', at: null }), 3);
  assert.equal(await told(null), undefined);
  conversation.dispose();
});

check('a tab that found no OpenCode comes to life when one runs, whoever started it', async () => {
  let dead = true;
  const { conversation, socket, all } = await open({
    messages: () => {
      if (dead) {
        throw new ApiError('opencode_unreachable', 'no');
      }
      return page([prompt('m1')]);
    }
  });
  assert.equal(conversation.error?.code, 'opencode_unreachable');
  dead = false;
  socket().get('instance.changed', { repo_root: '/other', state: 'running' });
  socket().get('instance.changed', { repo_root: '/r', state: 'starting' });
  await settle();
  assert.equal(conversation.error?.code, 'opencode_unreachable');
  socket().get('instance.changed', { repo_root: '/r', state: 'running' });
  await settle();
  assert.deepEqual([conversation.error, ids(conversation)], [null, ['m1']]);
  // What another process says may have begun before it is listened to.
  all.messages = () => page([prompt('m1'), prompt('m2')]);
  socket().get('instance.changed', { repo_root: '/r', state: 'running' });
  await settle();
  assert.deepEqual(ids(conversation), ['m1', 'm2']);
  conversation.dispose();
});

check('a session that nobody could find for a while is no deleted one', async () => {
  let known = false;
  const { conversation, socket } = await open({
    messages: () => {
      if (!known) {
        throw new ApiError('no_such_session', 'no');
      }
      return page([prompt('m1')]);
    }
  });
  assert.equal(conversation.isRemoved, true);
  known = true;
  socket().get('instance.changed', { repo_root: '/r', state: 'running' });
  await settle();
  assert.deepEqual([conversation.isRemoved, ids(conversation)], [false, ['m1']]);
  conversation.dispose();
});
