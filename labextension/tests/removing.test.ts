/**
 * Before a worktree goes: what would be lost, and what the user says to each.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ApiError } from '../src/errors';
import { LossCode, LossReason, RemoveRequest } from '../src/records';
import { Removing, rescueFolder, rescuedTo, sizeText } from '../src/removing';

function reason(code: LossCode, paths: string[] = [], bytes = 10): LossReason {
  const items = paths.map(path => ({ path, bytes }));
  return { code, message: code, items, total_bytes: bytes * paths.length };
}

/** A removal with an API that gives these reasons one after the other, and removes as the test says. */
function start(looks: LossReason[][], remove: (request: RemoveRequest) => unknown = () => undefined) {
  const asked: unknown[] = [];
  const requests: RemoveRequest[] = [];
  const removing = new Removing({
    api: {
      removal: async (path, options) => {
        asked.push([path, options]);
        const reasons = looks.length > 1 ? looks.shift()! : looks[0];
        return { reasons, safe: reasons.length === 0 };
      },
      removeWorktree: async request => {
        requests.push(request);
        const rescued = (remove(request) as any) ?? [];
        return { removed: true, branch_deleted: request.delete_branch === true, rescued };
      }
    },
    path: '/x/.worktrees/r/w',
    host: 'local',
    rescueTo: '/x/saved'
  });
  return { removing, asked, requests };
}

test('nothing to lose: ready at once', async () => {
  const { removing, requests } = start([[]]);
  assert.equal(removing.isReady, false);
  await removing.look();
  assert.equal(removing.isReady, true);
  await removing.remove();
  assert.equal(removing.phase, 'removed');
  assert.deepEqual(requests, [{ path: '/x/.worktrees/r/w', host: 'local', accept: [], delete_branch: false }]);
});

test('every reason wants a decision of its own', async () => {
  const { removing, requests } = start([[reason('uncommitted', ['a.py']), reason('ignored', ['m', 'n'], 50)]]);
  await removing.look();
  await removing.remove();
  assert.equal(requests.length, 0);
  removing.decide('uncommitted', 'accept');
  assert.equal(removing.isReady, false);
  removing.decide('ignored', 'rescue');
  assert.deepEqual([removing.isReady, removing.rescueBytes], [true, 100]);
  removing.rescueTo = 'not/absolute';
  assert.equal(removing.isReady, false);
  removing.rescueTo = '/x/saved';
  await removing.remove();
  assert.deepEqual(requests, [
    {
      path: '/x/.worktrees/r/w',
      host: 'local',
      accept: ['uncommitted'],
      delete_branch: false,
      rescue: ['ignored'],
      rescue_to: '/x/saved'
    }
  ]);
});

test('what has no files cannot be rescued', async () => {
  const { removing } = start([[reason('busy_session')]]);
  await removing.look();
  removing.decide('busy_session', 'rescue');
  assert.equal(removing.isReady, false);
  removing.decide('busy_session', 'accept');
  assert.equal(removing.isReady, true);
  removing.decide('busy_session', null);
  assert.equal(removing.isReady, false);
});

test('with the branch the question is asked again, and decisions stay where nothing changed', async () => {
  const same = reason('ignored', ['m']);
  const { removing, asked } = start([
    [same, reason('untracked', ['a'])],
    [same, reason('untracked', ['a', 'b']), reason('unreachable_commits', ['c1'])]
  ]);
  await removing.look();
  removing.decide('ignored', 'rescue');
  removing.decide('untracked', 'accept');
  await removing.setDeleteBranch(true);
  assert.deepEqual(asked[1], ['/x/.worktrees/r/w', { deleteBranch: true, host: 'local' }]);
  assert.equal(removing.decision('ignored'), 'rescue');
  assert.equal(removing.decision('untracked'), null);
  assert.equal(removing.isReady, false);
});

test('of two questions the answer to the later one counts', async () => {
  let answer: (reasons: LossReason[]) => void = () => undefined;
  const first = new Promise<LossReason[]>(resolve => (answer = resolve));
  let asked = 0;
  const removing = new Removing({
    api: {
      removal: async () => ({ reasons: asked++ ? [] : await first, safe: true }),
      removeWorktree: async () => ({ removed: true, branch_deleted: false, rescued: [] })
    },
    path: '/w',
    host: 'local',
    rescueTo: '/s'
  });
  const slow = removing.look();
  await removing.setDeleteBranch(true);
  answer([reason('ignored', ['old'])]);
  await slow;
  assert.deepEqual(removing.reasons, []);
});

test('what came up meanwhile is shown and wants a decision, the rest is not asked again', async () => {
  const now = [reason('ignored', ['m', 'new']), reason('busy_session')];
  const { removing } = start([[reason('ignored', ['m']), reason('untracked', ['a'])]], () => {
    throw new ApiError('would_lose_work', 'not yet', null, { reasons: now });
  });
  await removing.look();
  removing.decide('ignored', 'accept');
  removing.decide('untracked', 'accept');
  await removing.remove();
  assert.deepEqual([removing.phase, removing.error?.code], ['ready', 'would_lose_work']);
  assert.deepEqual([...removing.news], ['ignored', 'busy_session']);
  assert.equal(removing.decision('untracked'), 'accept');
  assert.equal(removing.decision('ignored'), null);
  assert.equal(removing.isReady, false);
});

test('another failure says so, and can be tried again', async () => {
  let tries = 0;
  const { removing } = start([[]], () => {
    if (!tries++) {
      throw ApiError.unreachable();
    }
  });
  await removing.look();
  await removing.remove();
  assert.deepEqual([removing.phase, removing.error?.code, removing.isReady], ['ready', 'server_unreachable', true]);
  await removing.remove();
  assert.equal(removing.phase, 'removed');
});

test('a look that fails says so and offers no removal', async () => {
  const removing = new Removing({
    api: {
      removal: async () => {
        throw new ApiError('no_such_worktree', 'gone');
      },
      removeWorktree: async () => assert.fail()
    },
    path: '/w',
    host: 'local',
    rescueTo: '/s'
  });
  await removing.look();
  assert.deepEqual([removing.phase, removing.isReady], ['failed', false]);
  await removing.remove();
});

test('what was copied before it failed is said', async () => {
  const rescued = [{ path: 'm', to: '/x/saved/m', bytes: 10 }];
  const { removing } = start([[reason('ignored', ['m'])]], () => {
    throw new ApiError('path_conflict', 'no', null, { rescued });
  });
  await removing.look();
  removing.decide('ignored', 'rescue');
  await removing.remove();
  assert.deepEqual(removing.result?.rescued, rescued);
  assert.equal(removing.phase, 'ready');
});

test('the folder for what is rescued stands beside the repository', () => {
  const day = new Date('2026-03-04T05:06:07Z');
  assert.equal(rescueFolder('/data/analysis', 'fix-loader', day), '/data/.worktrees-rescued/fix-loader-2026-03-04');
  assert.equal(rescueFolder('/analysis/', 'a/b c', day), '/.worktrees-rescued/a-b-c-2026-03-04');
});

test('where files were rescued to, told by where the first one is', () => {
  const result = { removed: true as const, branch_deleted: false };
  const rescued = [{ path: 'out/a.npy', to: '/saved/w/out/a.npy', bytes: 1 }];
  assert.equal(rescuedTo({ ...result, rescued }), '/saved/w');
  assert.equal(rescuedTo({ ...result, rescued: [] }), null);
});

test('sizes', () => {
  assert.deepEqual([0, 512, 999, 1000, 1234, 9_960, 123_456_789, 1.2e12].map(sizeText), [
    '0 B',
    '512 B',
    '999 B',
    '1.0 kB',
    '1.2 kB',
    '10 kB',
    '123 MB',
    '1.2 TB'
  ]);
});
