/**
 * The model: one stream, reconnected; requests and what becomes of them.
 */
import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { Api } from '../src/api';
import { Socket } from '../src/connection';
import { ApiError } from '../src/errors';
import { ANSWERED_STAYS, OcmanModel } from '../src/model';
import { WorktreeRequest } from '../src/records';
import { ask, key, list, session, snapshot, worktree } from './records';
import { check, settle } from './timing';

class FakeSocket implements Socket {
  onmessage: ((event: any) => void) | null = null;
  onclose: ((event: any) => void) | null = null;
  sent: any[] = [];
  closed = false;

  send(data: string): void {
    this.sent.push(JSON.parse(data));
  }

  close(): void {
    this.closed = true;
  }

  get(message: object): void {
    this.onmessage?.({ data: JSON.stringify(message) });
  }
}

/** A model on a clock that stands still, its sockets, and an API that answers what the test says. */
function start(answers: Partial<Record<keyof Api, (...args: any[]) => unknown>> = {}) {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  const sockets: FakeSocket[] = [];
  const calls: [string, unknown[]][] = [];
  const answer =
    (name: keyof Api) =>
    async (...args: unknown[]) => {
      calls.push([name, args]);
      return answers[name]?.(...args);
    };
  const api = {
    capabilities: answer('capabilities'),
    worktrees: answer('worktrees'),
    planWorktree: answer('planWorktree'),
    createWorktree: answer('createWorktree'),
    replyAsk: answer('replyAsk'),
    abortSession: answer('abortSession'),
    openEvents: () => {
      const socket = new FakeSocket();
      sockets.push(socket);
      return socket as unknown as WebSocket;
    }
  } as Api;
  const model = new OcmanModel({ api, pageVersion: '1.0.0' });
  model.start();
  return { model, sockets, calls, last: () => sockets[sockets.length - 1] };
}

check("one socket: live with the snapshot, and nobody's text is asked for", async () => {
  const { model, sockets, last } = start();
  assert.equal(model.connection.phase, 'connecting');
  last().get({ type: 'snapshot', host: 'local', seq: 1, data: snapshot({ sessions: [session('a')] }) });
  assert.equal(model.connection.phase, 'live');
  assert.equal(model.state.sessions.size, 1);
  assert.deepEqual(last().sent, [{ subscribe: { sessions: [] } }]);
  model.retry();
  assert.equal(sockets.length, 1);
  model.dispose();
  assert.ok(last().closed);
});

check('changes are told together', async () => {
  const { model, last } = start();
  let told = 0;
  model.changed.connect(() => (told += 1));
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ sessions: [session('a')] }) });
  for (const status of ['busy', 'idle', 'busy', 'needs_you']) {
    last().get({ type: 'session.status', host: 'local', data: { id: 'a', directory: '/r/w', status } });
  }
  mock.timers.tick(20);
  assert.equal(told, 1);
  assert.equal(model.state.sessions.get(key('a'))?.status, 'needs_you');
  model.dispose();
});

check('a lost stream is opened again, later each time, and a snapshot makes it live', async () => {
  const { model, sockets, last } = start();
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ sessions: [session('a')] }) });
  const delays: number[] = [];
  for (let i = 0; i < 7; i++) {
    last().onclose?.({});
    await settle();
    const { connection } = model;
    assert.equal(connection.phase, 'reconnecting');
    const delay = (connection.phase === 'reconnecting' && connection.retryAt! - Date.now()) || 0;
    delays.push(delay);
    assert.equal(model.state.sessions.size, 1);
    mock.timers.tick(Math.ceil(delay));
  }
  assert.equal(sockets.length, 8);
  assert.ok(delays[0] >= 250 && delays[0] <= 500, `first after ${delays[0]}`);
  assert.ok(delays[6] >= 7_500 && delays[6] <= 15_000, `last after ${delays[6]}`);
  last().get({ type: 'snapshot', host: 'local', data: snapshot({}) });
  assert.equal(model.connection.phase, 'live');
  assert.equal(model.state.sessions.size, 0);
  model.dispose();
});

check('no snapshot in time is a lost stream too', async () => {
  const { model, last } = start();
  const first = last();
  mock.timers.tick(20_001);
  await settle();
  assert.ok(first.closed);
  assert.equal(model.connection.phase, 'reconnecting');
  model.dispose();
});

for (const [status, trouble] of [
  [404, 'extension_missing'],
  [403, 'unauthorized'],
  [503, 'unreachable']
] as const) {
  check(`a refused stream and status ${status}: ${trouble}`, async () => {
    const { model, last } = start({
      capabilities: () => {
        throw ApiError.fromResponse(status, null);
      }
    });
    last().onclose?.({});
    await settle();
    const { connection } = model;
    assert.equal(connection.phase === 'reconnecting' && connection.trouble, trouble);
    model.dispose();
  });
}

check('another version of the server is told, the same is not', async () => {
  let version = '1.0.0';
  const { model, last } = start({ capabilities: () => ({ version, missing: [] }) });
  last().get({ type: 'snapshot', host: 'local', data: snapshot({}) });
  await settle();
  assert.equal(model.otherVersion, null);
  version = '1.1.0';
  last().onclose?.({});
  await settle();
  model.retry();
  last().get({ type: 'snapshot', host: 'local', data: snapshot({}) });
  await settle();
  assert.equal(model.otherVersion, '1.1.0');
  model.dispose();
});

check('an answer stands for a moment, then its ask is gone', async () => {
  const { model, last, calls } = start();
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ asks: [ask('p')] }) });
  const reply = model.reply(key('p'), { reply: 'always' });
  assert.equal(model.state.asks.get(key('p'))?.phase, 'sending');
  await model.reply(key('p'), { reply: 'once' });
  await reply;
  assert.equal(calls.filter(([name]) => name === 'replyAsk').length, 1);
  const { phase, reply: outcome, mine } = model.state.asks.get(key('p'))!;
  assert.deepEqual([phase, outcome, mine], ['done', 'always', true]);
  mock.timers.tick(ANSWERED_STAYS);
  assert.equal(model.state.asks.size, 0);
  model.dispose();
});

check('an answer that came too late says that it was answered elsewhere', async () => {
  const { model, last } = start({
    replyAsk: () => {
      throw new ApiError('not_found', 'gone');
    }
  });
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ asks: [ask('p')] }) });
  await model.reply(key('p'), { reply: 'once' });
  assert.deepEqual(
    [model.state.asks.get(key('p'))?.phase, model.state.asks.get(key('p'))?.mine],
    ['done', false]
  );
  model.dispose();
});

check('an answer that failed can be given again', async () => {
  const { model, last } = start({
    replyAsk: () => {
      throw ApiError.unreachable();
    }
  });
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ asks: [ask('p')] }) });
  await model.reply(key('p'), { reply: 'once' });
  assert.equal(model.state.asks.get(key('p'))?.phase, 'open');
  assert.match(model.state.asks.get(key('p'))!.error!.message, /does not answer/);
  model.dispose();
});

check('a new worktree session has a row until its worktree is there', async () => {
  const made = {
    session_id: 'new',
    worktree_path: '/r/idea',
    branch: 'idea',
    repo_root: '/r',
    host: 'local',
    warnings: [],
    session: session('new', { directory: '/r/idea' })
  };
  const { model, last } = start({
    createWorktree: () => made,
    worktrees: () => list([worktree('idea')])
  });
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [list([])] }) });
  const creating = model.creations.create({ directory: '/r', branch: 'idea' }, key('/r'));
  const [id] = model.creations.all.keys();
  last().get({
    type: 'progress',
    host: 'local',
    data: { operation: id, message: 'Checking out', fraction: 0.4, directory: '/r' }
  });
  assert.deepEqual(model.creations.all.get(id)?.progress, { message: 'Checking out', fraction: 0.4 });
  await creating;
  assert.equal(model.creations.all.size, 0);
  assert.ok(model.state.sessions.has(key('new')));
  assert.ok(model.state.repositories.get(key('/r'))?.worktrees.has('/r/idea'));
  model.dispose();
});

check(
  'a failed creation tried again: the same id when nobody answered, a new one after a refusal',
  async () => {
    const ids: unknown[] = [];
    const errors = [
      ApiError.unreachable(),
      new ApiError('path_conflict', 'taken'),
      new ApiError('path_conflict', 'taken')
    ];
    const { model } = start({
      createWorktree: (request: WorktreeRequest) => {
        ids.push(request.request_id);
        throw errors[ids.length - 1];
      }
    });
    await model.creations.create({ directory: '/r', branch: 'idea' }, key('/r'));
    await model.creations.retry([...model.creations.all.keys()][0]);
    await model.creations.retry([...model.creations.all.keys()][0]);
    assert.equal(ids[0], ids[1]);
    assert.notEqual(ids[1], ids[2]);
    const [creation] = model.creations.all.values();
    assert.deepEqual([creation.phase, creation.error?.code], ['failed', 'path_conflict']);
    model.creations.dismiss(creation.id);
    assert.equal(model.creations.all.size, 0);
    model.dispose();
  }
);

check("a worktree that appears in nobody's list is asked for", async () => {
  const { model, last, calls } = start({ worktrees: () => list([worktree('new')]) });
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [list([])] }) });
  last().get({ type: 'worktree.changed', host: 'local', data: worktree('new') });
  await settle();
  assert.deepEqual(
    calls.filter(([name]) => name === 'worktrees'),
    [['worktrees', ['/r/new', { changes: true, host: 'local' }]]]
  );
  assert.ok(model.state.repositories.get(key('/r'))?.worktrees.has('/r/new'));
  model.dispose();
});

check(
  'the folder of the user: the last one counts, and it is asked for again after a reconnect',
  async () => {
    const { model, last, calls } = start({
      worktrees: (directory: string) => {
        if (directory === '/nothing') {
          throw new ApiError('not_a_repository', 'no', 'git init');
        }
        return list([]);
      }
    });
    void model.goTo('/r');
    last().get({ type: 'snapshot', host: 'local', data: snapshot({}) });
    await settle();
    assert.equal(model.place?.repository, key('/r'));
    await model.goTo('/nothing');
    assert.deepEqual([model.place?.repository, model.place?.error?.hint], [null, 'git init']);
    await model.goTo('/nothing');
    assert.equal(calls.filter(([name]) => name === 'worktrees').length, 2);
    last().get({ type: 'snapshot', host: 'local', data: snapshot({}) });
    await settle();
    assert.equal(calls.filter(([name]) => name === 'worktrees').length, 3);
    model.dispose();
  }
);

check('an event is newer than a list that was on its way when it came', async () => {
  let answer: (value: unknown) => void = () => undefined;
  const { model, last } = start({ worktrees: () => new Promise(resolve => (answer = resolve)) });
  const old = list([worktree('w', { sessions: [session('a'), session('gone')] }), worktree('removed')]);
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [old] }) });
  model.loadDetails(key('/r'));
  for (const [type, data] of [
    ['session.status', { id: 'a', directory: '/r/w', status: 'busy' }],
    ['session.removed', { id: 'gone', directory: '/r/w' }],
    ['worktree.removed', { path: '/r/removed', repo_root: '/r' }],
    ['worktree.changed', { ...worktree('made'), repo_root: '/r' }]
  ] as const) {
    last().get({ type, host: 'local', data });
  }
  answer(list([worktree('w', { ahead: 3, sessions: [session('a'), session('gone')] }), worktree('removed')]));
  await settle();
  const trees = model.state.repositories.get(key('/r'))!.worktrees;
  assert.equal(model.state.sessions.get(key('a'))?.status, 'busy');
  assert.equal(model.state.sessions.has(key('gone')), false);
  assert.deepEqual([...trees.keys()].sort(), ['/r/made', '/r/w']);
  assert.equal(trees.get('/r/w')?.ahead, 3);
  model.dispose();
});

const treesRead = (calls: [string, unknown[]][]) => calls.filter(([name]) => name === 'worktrees').length;

check('who looks at the page again sees what was done in a shell, and no event told', async () => {
  let there = [worktree('w'), worktree('x')];
  const { model, last, calls } = start({ worktrees: () => list(there) });
  model.lookAgain();
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [list(there)] }) });
  model.lookAgain();
  await settle();
  // Nobody has looked at the tree yet.
  assert.equal(treesRead(calls), 0);
  model.loadDetails(key('/r'));
  await settle();
  there = [worktree('w')];
  mock.timers.tick(3_000);
  model.lookAgain();
  model.lookAgain();
  await settle();
  assert.equal(treesRead(calls), 2);
  assert.deepEqual([...model.state.repositories.get(key('/r'))!.worktrees.keys()], ['/r/w']);
  model.dispose();
});

check('a session that has lost its folder, or has it again, makes the tree be read once', async () => {
  const lost = { status: 'directory_missing' as const };
  const inside = (facts: object) => ['a', 'b'].map(id => session(id, { directory: '/r/w', ...facts }));
  let now = list([worktree('w', { state: 'missing', sessions: inside(lost) })]);
  const { model, last, calls } = start({ worktrees: () => now });
  const before = list([worktree('w', { sessions: inside({}) })]);
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [before] }) });
  const tell = async (type: string, ...all: object[]) => {
    all.forEach(data => last().get({ type, host: 'local', data }));
    mock.timers.tick(200);
    await settle();
  };
  await tell('session.updated', ...inside({}));
  assert.equal(treesRead(calls), 0);
  await tell('session.updated', ...inside(lost));
  assert.equal(treesRead(calls), 1);
  assert.equal(model.state.repositories.get(key('/r'))!.worktrees.get('/r/w')!.state, 'missing');
  await tell('session.updated', ...inside(lost));
  assert.equal(treesRead(calls), 1);
  // It was made again.
  now = before;
  await tell('worktree.changed', { ...worktree('w'), repo_root: '/r' });
  assert.equal(treesRead(calls), 2);
  assert.equal(model.state.sessions.get(key('a'))!.status, 'idle');
  model.dispose();
});

const changed = (modified: number) => ({ changes: { modified, untracked: 0, conflicted: 0 } });

/** A model that knows of one changed file in the worktree `w`, where two are changed by now. */
async function outdated() {
  const inside = { sessions: [session('a', { directory: '/r/w', status: 'busy' as const })] };
  let now = list([worktree('w', { ...inside, ...changed(1) })]);
  const started = start({ worktrees: () => now });
  const bare = list([worktree('w', { ...inside, changes: null })]);
  started.last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [bare] }) });
  const unasked = ask('early', { session_id: 'a' });
  started.last().get({ type: 'ask.created', host: 'local', data: unasked });
  mock.timers.tick(5_000);
  await settle();
  assert.equal(treesRead(started.calls), 0);
  started.model.loadDetails(key('/r'));
  await settle();
  now = list([worktree('w', { ...inside, ...changed(2) })]);
  const count = () => started.model.state.repositories.get(key('/r'))!.worktrees.get('/r/w')!.changes!.modified;
  assert.equal(count(), 1);
  const edit = (id: string, tool = 'edit') => {
    const state = { status: 'completed', input: { filePath: '/r/w/a.py' } };
    const message = { info: {}, parts: [{ id, type: 'tool', tool, state }] };
    started.last().get({ type: 'message.updated', host: 'local', data: { session_id: 'a', message } });
  };
  return { ...started, count, edit };
}

check('how much is changed is read again when a session asks something', async () => {
  const { model, last, count } = await outdated();
  last().get({ type: 'ask.created', host: 'local', data: ask('p', { session_id: 'a' }) });
  mock.timers.tick(200);
  await settle();
  assert.equal(count(), 2);
  model.dispose();
});

check('how much is changed is read again now and then while an agent edits', async () => {
  const { model, last, calls, count, edit } = await outdated();
  edit('0', 'read');
  mock.timers.tick(3_000);
  await settle();
  assert.equal(treesRead(calls), 1);
  for (const id of ['1', '2', '3']) {
    edit(id);
    mock.timers.tick(900);
  }
  await settle();
  assert.equal(treesRead(calls), 1);
  mock.timers.tick(300);
  await settle();
  assert.deepEqual([treesRead(calls), count()], [2, 2]);
  // An ask does not wait for that, and has what was edited counted as well.
  edit('4');
  last().get({ type: 'ask.created', host: 'local', data: ask('p', { session_id: 'a' }) });
  mock.timers.tick(200);
  await settle();
  assert.equal(treesRead(calls), 3);
  mock.timers.tick(3_000);
  await settle();
  assert.equal(treesRead(calls), 3);
  model.dispose();
});

check('a worktree that was made in the place of a lost one has its sessions again', async () => {
  const inside = (status: 'idle' | 'directory_missing') => [session('a', { directory: '/r/idea', status })];
  const made = { session_id: null, worktree_path: '/r/idea', repo_root: '/r', host: 'local', session: null };
  const { model, last } = start({
    createWorktree: () => ({ ...made, branch: 'idea', warnings: [] }),
    worktrees: () => list([worktree('idea', { sessions: inside('idle') })])
  });
  const gone = list([worktree('idea', { state: 'missing', sessions: inside('directory_missing') })]);
  last().get({ type: 'snapshot', host: 'local', data: snapshot({ repositories: [gone] }) });
  await model.creations.create({ directory: '/r', branch: 'idea' }, key('/r'));
  assert.equal(model.state.sessions.get(key('a'))!.status, 'idle');
  model.dispose();
});
