/**
 * What is done from rows, and what commands are about.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Actions } from '../src/actions';
import { Api } from '../src/api';
import { subjectFrom } from '../src/command_names';
import { ApiError } from '../src/errors';
import { OcmanModel } from '../src/model';
import { EMPTY, applyEvent, applySnapshot } from '../src/state';
import { find, lostWorktree, rowKey } from '../src/subject';
import { key, list, session, snapshot, worktree } from './records';

const main = worktree('main', { path: '/r', is_main: true });
const STATE = applySnapshot(
  EMPTY,
  snapshot({
    repositories: [list([main, worktree('w')])],
    sessions: [session('a', { directory: '/r/w/deep' }), session('lost', { directory: '/gone' })]
  })
);
const REPOSITORY = STATE.repositories.get(key('/r'))!;
const SESSION = STATE.sessions.get(key('a'))!;

function start(api: Partial<Api>): Actions {
  return new Actions({ api } as unknown as OcmanModel);
}

test('what did not work stands in its row until it is tried again', async () => {
  let works = false;
  const actions = start({
    renameSession: async () => {
      if (!works) {
        throw new ApiError('opencode_unreachable', 'no');
      }
      return session('a');
    }
  });
  await actions.rename(SESSION, 'new');
  const row = `session\n${key('a')}`;
  assert.equal(actions.problems.get(row)?.error.code, 'opencode_unreachable');
  works = true;
  actions.problems.get(row)!.retry();
  await new Promise(resolve => setTimeout(resolve));
  assert.equal(actions.problems.size, 0);
});

test('the same row is not worked on twice at once', async () => {
  let calls = 0;
  let done: () => void = () => undefined;
  const actions = start({
    deleteSession: () => {
      calls += 1;
      return new Promise(resolve => (done = resolve));
    }
  });
  const first = actions.delete(SESSION);
  assert.equal(await actions.delete(SESSION), false);
  done();
  assert.equal(await first, true);
  assert.equal(calls, 1);
});

test('a new session and a fork give their keys, and carry an id so that they are made once', async () => {
  const ids: unknown[] = [];
  const actions = start({
    createSession: async request => {
      ids.push(request.request_id);
      return session('new', { directory: request.directory });
    },
    fork: async (_id, _message, request) => {
      ids.push(request);
      return session('copy');
    }
  });
  const made: string[] = [];
  const note = (one: string) => made.push(one);
  await actions.newSession({ kind: 'worktree', host: 'local', path: '/r/w' }, '/r/w', note);
  await actions.fork(SESSION, note);
  assert.deepEqual(made, [key('new'), key('copy')]);
  assert.ok(ids.every(id => typeof id === 'string' && id) && ids[0] !== ids[1]);
});

test('busy sessions are given back to be asked about, other errors stand in the row', async () => {
  const forced: boolean[] = [];
  let code = 'session_busy';
  const actions = start({
    stopInstance: async (_directory, { force }) => {
      forced.push(force);
      if (!force) {
        throw new ApiError(code, 'no', null, { sessions: ['a'] });
      }
    }
  });
  const busy = await actions.stop(REPOSITORY, false);
  assert.deepEqual([busy?.code, actions.problems.size], ['session_busy', 0]);
  assert.equal(await actions.stop(REPOSITORY, true), null);
  code = 'not_ours';
  await actions.stop(REPOSITORY, false);
  assert.equal(actions.problems.get(REPOSITORY.key)?.error.code, 'not_ours');
  assert.deepEqual(forced, [false, true, false]);
});

test('a session is found with its worktree and repository', () => {
  const found = find(STATE, { kind: 'session', host: 'local', id: 'a' });
  assert.deepEqual(
    [found?.session?.id, found?.worktree?.path, found?.repository?.root, found?.path],
    ['a', '/r/w', '/r', '/r/w']
  );
  const lost = find(STATE, { kind: 'session', host: 'local', id: 'lost' });
  assert.deepEqual([lost?.worktree, lost?.repository?.root, lost?.path], [undefined, '/r', '/gone']);
});

test('what is gone, or on another host, is not found', () => {
  assert.equal(find(STATE, { kind: 'session', host: 'far', id: 'a' }), null);
  assert.equal(find(STATE, { kind: 'worktree', host: 'local', path: '/r/x' }), null);
  assert.equal(find(STATE, null), null);
});

test('arguments name a session, a worktree or a repository, or nothing', () => {
  assert.deepEqual(subjectFrom({ id: 'a' }), { kind: 'session', host: 'local', id: 'a' });
  assert.deepEqual(subjectFrom({ path: '/w', host: 'far' }), { kind: 'worktree', host: 'far', path: '/w' });
  assert.deepEqual(subjectFrom({ root: '/r' }), { kind: 'repository', host: 'local', root: '/r' });
  assert.equal(subjectFrom({ path: 3, host: '' } as never), null);
  assert.equal(rowKey({ kind: 'worktree', host: 'local', path: '/w' }), `worktree\n${key('/w')}`);
});

test('what a session has lost is told by the branch that its worktree had, else by the name of its folder', () => {
  const gone = { status: 'directory_missing' as const, directory: '/r/w', title: 'Idea' };
  const lost = (state: typeof STATE) =>
    lostWorktree(find(state, { kind: 'session', host: 'local', id: 'a' })!);
  assert.equal(lost(STATE), undefined);
  const before = applySnapshot(
    EMPTY,
    snapshot({ repositories: [list([worktree('w', { branch: 'feat/w' })])], sessions: [session('a', gone)] })
  );
  const data = { path: '/r/w', repo_root: '/r' };
  const removed = applyEvent(before, { type: 'worktree.removed', host: 'local', data });
  assert.deepEqual(lost(removed), { path: '/r/w', branch: 'feat/w', title: 'Idea' });
  const unseen = applySnapshot(EMPTY, snapshot({ sessions: [session('a', gone)] }));
  assert.deepEqual(lost(unseen), { path: '/r/w', branch: 'w', title: 'Idea' });
});
