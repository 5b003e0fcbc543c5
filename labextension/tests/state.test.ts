/**
 * What each message of the server does to the state.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Snapshot } from '../src/records';
import {
  EMPTY,
  applyEvent,
  applySnapshot,
  applyWorktrees,
  failedAsk,
  forgetAsk,
  isWithin,
  keyOf,
  sendingAsk
} from '../src/state';
import { ask, key, list, session, snapshot, worktree } from './records';

const event = (type: string, data: object, host = 'local') => ({ type, host, data });

test('a snapshot replaces what was there before', () => {
  let state = applySnapshot(EMPTY, snapshot({ sessions: [session('a'), session('b')] }));
  state = applySnapshot(state, snapshot({ sessions: [session('b')] }));
  assert.deepEqual([...state.sessions.keys()], [key('b')]);
});

test('a snapshot of one host leaves the things of the others', () => {
  let state = applySnapshot(
    EMPTY,
    snapshot({ sessions: [session('a', { host: 'far' })], asks: [ask('p', { host: 'far' })] }),
    'far'
  );
  state = applySnapshot(state, snapshot({ sessions: [session('b')] }));
  assert.deepEqual([...state.sessions.keys()], [keyOf('far', 'a'), key('b')]);
  assert.equal(state.asks.get(keyOf('far', 'p'))?.phase, 'open');
});

test('a session that the server found in a worktree stays there although its directory is a link', () => {
  const linked = session('a', { directory: '/link/to/w' });
  let state = applySnapshot(
    EMPTY,
    snapshot({ repositories: [list([worktree('w', { sessions: [linked] })])] })
  );
  state = applyEvent(state, event('session.updated', { ...linked, title: 'new' }));
  assert.equal(state.sessions.get(key('a'))?.place, '/r/w');
  state = applyEvent(state, event('session.updated', { ...linked, directory: '/elsewhere' }));
  assert.equal(state.sessions.get(key('a'))?.place, undefined);
});

test('a status changes one session, and nothing when it is the same or the session unknown', () => {
  const before = applySnapshot(EMPTY, snapshot({ sessions: [session('a'), session('b')] }));
  const after = applyEvent(before, event('session.status', { id: 'a', directory: '/r', status: 'busy' }));
  assert.equal(after.sessions.get(key('a'))?.status, 'busy');
  assert.equal(after.sessions.get(key('b')), before.sessions.get(key('b')));
  assert.equal(
    applyEvent(after, event('session.status', { id: 'a', directory: '/r', status: 'busy' })),
    after
  );
  assert.equal(
    applyEvent(after, event('session.status', { id: 'x', directory: '/r', status: 'busy' })),
    after
  );
});

test('a removed session and a removed worktree are gone', () => {
  let state = applySnapshot(
    EMPTY,
    snapshot({ sessions: [session('a')], repositories: [list([worktree('w')])] })
  );
  state = applyEvent(state, event('session.removed', { id: 'a', directory: '/r/w' }));
  state = applyEvent(state, event('worktree.removed', { path: '/r/w', repo_root: '/r' }));
  assert.equal(state.sessions.size, 0);
  assert.equal(state.repositories.get(key('/r'))?.worktrees.size, 0);
});

test('a changed worktree is found by its path, and a new one by its repository', () => {
  let state = applySnapshot(EMPTY, snapshot({ repositories: [list([worktree('w')])] }));
  state = applyEvent(state, event('worktree.changed', worktree('w', { ahead: 3 })));
  state = applyEvent(state, event('worktree.changed', { ...worktree('v'), repo_root: '/r' }));
  const unknown = applyEvent(state, event('worktree.changed', worktree('u')));
  const trees = state.repositories.get(key('/r'))!.worktrees;
  assert.equal(trees.get('/r/w')?.ahead, 3);
  assert.ok(trees.has('/r/v'));
  assert.equal(unknown, state);
});

test('a list without the slow parts keeps those that are known of the same commit', () => {
  const known = worktree('w', {
    head: 'c1',
    changes: { modified: 2, untracked: 0, conflicted: 0 },
    ahead: 1,
    behind: 0,
    merged: 'no'
  });
  const quick = { ...known, changes: null, ahead: null, behind: null, merged: 'unknown' as const };
  const full = applyWorktrees(EMPTY, list([known]));
  const tree = (state: typeof full) => state.repositories.get(key('/r'))!.worktrees.get('/r/w')!;
  assert.deepEqual(tree(applyWorktrees(full, list([quick]))), known);
  assert.equal(tree(applyWorktrees(full, list([{ ...quick, head: 'c2' }]))).changes, null);
});

test('an ask that this page answered is its own', () => {
  let state = applySnapshot(EMPTY, snapshot({ asks: [ask('p')] }));
  state = sendingAsk(state, key('p'), 'once');
  state = applyEvent(state, event('ask.resolved', { id: 'p', session_id: 'a', reply: 'once' }));
  assert.deepEqual(state.asks.get(key('p')), { ask: ask('p'), phase: 'done', reply: 'once', mine: true });
  assert.equal(forgetAsk(state, key('p')).asks.size, 0);
});

test('an ask that somebody else answered says so, also while an answer of this page is on its way', () => {
  let state = applySnapshot(EMPTY, snapshot({ asks: [ask('p'), ask('q')] }));
  state = applyEvent(state, event('ask.resolved', { id: 'p', session_id: 'a', reply: 'reject' }));
  state = sendingAsk(state, key('q'), 'once');
  state = applyEvent(state, event('ask.resolved', { id: 'q', session_id: 'a', reply: 'reject' }));
  for (const id of ['p', 'q']) {
    const known = state.asks.get(key(id))!;
    assert.deepEqual([known.phase, known.reply, known.mine], ['done', 'reject', false]);
  }
});

test('an ask cannot be answered twice, and again after its answer failed', () => {
  let state = applySnapshot(EMPTY, snapshot({ asks: [ask('p')] }));
  state = sendingAsk(state, key('p'), 'once');
  assert.equal(sendingAsk(state, key('p'), 'always'), state);
  state = failedAsk(state, key('p'), { message: 'no', hint: null });
  assert.equal(state.asks.get(key('p'))?.error?.message, 'no');
  assert.equal(sendingAsk(state, key('p'), 'reject').asks.get(key('p'))?.phase, 'sending');
});

test('asks keep their places: the oldest first, new ones at the end, answered ones where they were', () => {
  const asks = [
    ask('late', { created: '2026-01-02T00:00:00Z' }),
    ask('early', { created: '2026-01-01T00:00:00Z' })
  ];
  let state = applySnapshot(EMPTY, snapshot({ asks }));
  state = applyEvent(state, event('ask.created', ask('new')));
  state = applyEvent(state, event('ask.resolved', { id: 'early', session_id: 'a', reply: 'once' }));
  assert.deepEqual(
    [...state.asks.values()].map(known => known.ask.id),
    ['early', 'late', 'new']
  );
});

test('an ask that is not in a new snapshot was answered in the gap', () => {
  let state = applySnapshot(EMPTY, snapshot({ asks: [ask('p'), ask('q')] }));
  state = sendingAsk(state, key('q'), 'always');
  state = applySnapshot(state, snapshot({}));
  assert.deepEqual(
    [...state.asks.values()].map(({ phase, reply, mine }) => [phase, reply, mine]),
    [
      ['done', 'gone', false],
      ['done', 'always', true]
    ]
  );
});

test('events of types that are not known change nothing', () => {
  assert.equal(applyEvent(EMPTY, event('loop.changed', {})), EMPTY);
});

test('a path is within a folder by components', () => {
  assert.ok(isWithin('/a/b', '/a/b') && isWithin('/a/b/c', '/a/b') && isWithin('/a', '/'));
  assert.ok(!isWithin('/a/bc', '/a/b') && !isWithin('/a', '/a/b'));
});

test('a snapshot that lacks parts is not the end', () => {
  assert.equal(applySnapshot(EMPTY, {} as Snapshot).sessions.size, 0);
});
