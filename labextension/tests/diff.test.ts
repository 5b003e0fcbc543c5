/**
 * The diff tab's model.
 */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Signal } from '@lumino/signaling';
import { CellChange, cellChanges, cellRows } from '../src/diff/notebook_diff';
import { DiffModel, SETTLES } from '../src/diff/state';
import { ApiError } from '../src/errors';
import { OcmanModel } from '../src/model';
import { Diff, FileDiff, HostEvent } from '../src/records';
import { EMPTY, State, applySnapshot } from '../src/state';
import { fileDiff, list, session, snapshot, worktree } from './records';
import { settle, timed as check } from './timing';

function file(path: string, facts: Partial<FileDiff> = {}): FileDiff {
  return fileDiff(path, { patch: `@@ -1 +1 @@\n-a\n+${path}\n`, ...facts });
}

function diffOf(...files: FileDiff[]): Diff {
  return { files, truncated: false, against: { ref: 'main', sha: 'a'.repeat(40) } };
}

class FakeModel {
  changed = new Signal<this, void>(this);
  event = new Signal<this, HostEvent>(this);
  connection: { phase: string } = { phase: 'live' };
  state: State = applySnapshot(
    EMPTY,
    snapshot({
      sessions: [session('a', { directory: '/r/w/sub' }), session('far', { directory: '/r/wide' })],
      repositories: [list([worktree('w'), worktree('other')])]
    })
  );
  calls: unknown[][] = [];
  answers: (() => Promise<Diff> | Diff)[] = [];
  api = {
    worktreeDiff: async (...args: unknown[]) => {
      this.calls.push(args);
      return (this.answers.shift() ?? (() => diffOf()))();
    }
  };

  tell(type: string, data: object, host = 'local'): void {
    this.event.emit({ type, host, data });
  }
}

function start(options: { against?: string } = {}) {
  const fake = new FakeModel();
  const diff = new DiffModel(fake as unknown as OcmanModel, { host: 'local', path: '/r/w', ...options });
  return { fake, diff };
}

check('nothing is asked for before a human can see it', async () => {
  const { fake, diff } = start();
  fake.tell('worktree.changed', { path: '/r/w' });
  mock.timers.tick(SETTLES);
  assert.equal(fake.calls.length, 0);
  fake.answers = [() => diffOf(file('a.py'))];
  diff.isVisible = true;
  assert.ok(diff.isLoading);
  await settle();
  assert.deepEqual(fake.calls, [['/r/w', 'base', 'local']]);
  assert.deepEqual(
    diff.files.map(({ path }) => path),
    ['a.py']
  );
  diff.isVisible = false;
  fake.tell('worktree.changed', { path: '/r/w' });
  mock.timers.tick(SETTLES);
  assert.equal(fake.calls.length, 1);
  diff.isVisible = true;
  await settle();
  assert.equal(fake.calls.length, 2);
  diff.dispose();
});

check('old data stays while new is waited for, and files that did not change stay the same record', async () => {
  const { fake, diff } = start();
  fake.answers = [
    () => diffOf(file('a.py'), file('b.py')),
    () => diffOf(file('a.py'), file('b.py', { patch: 'other' }))
  ];
  diff.isVisible = true;
  await settle();
  const [a, b] = diff.files;
  void diff.refresh();
  assert.ok(diff.isLoading);
  assert.equal(diff.files.length, 2);
  await settle();
  assert.equal(diff.files[0], a);
  assert.notEqual(diff.files[1], b);
  diff.dispose();
});

check('changes of this worktree are one question, those of others none', async () => {
  const { fake, diff } = start();
  diff.isVisible = true;
  await settle();
  fake.tell('worktree.changed', { path: '/r/other' });
  fake.tell('worktree.changed', { path: '/r/w' }, 'far-host');
  fake.tell('session.status', { id: 'far', status: 'idle' });
  fake.tell('session.status', { id: 'a', status: 'busy' });
  mock.timers.tick(SETTLES);
  await settle();
  assert.equal(fake.calls.length, 1);
  fake.tell('session.status', { id: 'a', status: 'idle' });
  mock.timers.tick(SETTLES - 1);
  fake.tell('worktree.changed', { path: '/r/w' });
  mock.timers.tick(SETTLES);
  await settle();
  assert.equal(fake.calls.length, 2);
  diff.dispose();
  fake.tell('worktree.changed', { path: '/r/w' });
  mock.timers.tick(SETTLES);
  assert.equal(fake.calls.length, 2);
});

check('what it is compared with changes too', async () => {
  const { fake, diff } = start({ against: '/r/other' });
  diff.isVisible = true;
  await settle();
  fake.tell('worktree.changed', { path: '/r/other' });
  mock.timers.tick(SETTLES);
  await settle();
  assert.equal(fake.calls.length, 2);
  fake.answers = [() => diffOf(file('mine'))];
  diff.against = 'HEAD';
  assert.equal(diff.diff, null);
  await settle();
  assert.deepEqual(fake.calls[2], ['/r/w', 'HEAD', 'local']);
  assert.equal(diff.files.length, 1);
  diff.dispose();
});

check('a late answer to an earlier question is dropped', async () => {
  const { fake, diff } = start();
  let answer: (found: Diff) => void = () => undefined;
  fake.answers = [() => new Promise<Diff>(resolve => (answer = resolve)), () => diffOf(file('new'))];
  diff.isVisible = true;
  diff.against = 'HEAD';
  await settle();
  answer(diffOf(file('old')));
  await settle();
  assert.deepEqual(
    diff.files.map(({ path }) => path),
    ['new']
  );
  assert.ok(!diff.isLoading);
  diff.dispose();
});

check('an error keeps what was read; the next answer clears it; a lost worktree is told apart', async () => {
  const { fake, diff } = start();
  const fail = (code: string) => () => Promise.reject(new ApiError(code, 'no'));
  fake.answers = [() => diffOf(file('a')), fail('server_unreachable')];
  diff.isVisible = true;
  await settle();
  await diff.refresh();
  assert.deepEqual([diff.error?.code, diff.files.length, diff.isGone], ['server_unreachable', 1, false]);
  await diff.refresh();
  assert.deepEqual([diff.error, diff.files.length], [null, 0]);
  fake.answers = [fail('no_such_worktree')];
  await diff.refresh();
  assert.ok(diff.isGone);
  await diff.refresh();
  assert.ok(!diff.isGone);
  fake.tell('worktree.removed', { path: '/r/w', repo_root: '/r' });
  assert.ok(diff.isGone);
  diff.dispose();
});

check('what happened while the stream was lost is asked for when it is back', async () => {
  const { fake, diff } = start();
  diff.isVisible = true;
  await settle();
  fake.connection = { phase: 'reconnecting' };
  fake.changed.emit();
  mock.timers.tick(SETTLES);
  assert.equal(fake.calls.length, 1);
  fake.connection = { phase: 'live' };
  fake.changed.emit();
  mock.timers.tick(SETTLES);
  assert.equal(fake.calls.length, 2);
  diff.dispose();
});

check('a file stays viewed as long as its patch is the same', async () => {
  const { fake, diff } = start();
  fake.answers = [
    () => diffOf(file('a'), file('b')),
    () => diffOf(file('a'), file('b', { patch: '@@ -1 +1 @@\n-a\n+c\n' }))
  ];
  diff.isVisible = true;
  await settle();
  diff.files.forEach(each => diff.setViewed(each, true));
  await diff.refresh();
  assert.deepEqual(
    diff.files.map(each => diff.isViewed(each)),
    [true, false]
  );
  diff.setViewed(diff.files[0], false);
  assert.ok(!diff.isViewed(diff.files[0]));
  diff.dispose();
});

function cell(kind: CellChange['kind'], index: number): CellChange {
  return {
    kind,
    index,
    cell_type: 'code',
    source_patch: '@@ -0,0 +1 @@\n+x',
    outputs_changed: false,
    metadata_changed: false
  };
}

test("a notebook's changed cells come from the server, or there are none", () => {
  assert.equal(cellChanges(file('n.ipynb', { notebook: true })), null);
  const cells = [cell('added', 0)];
  const told = { ...file('n.ipynb', { notebook: true }), notebook_diff: cells };
  assert.deepEqual(cellChanges(told), cells);
  assert.equal(cellChanges({ ...told, notebook: false }), null);
});

test('between changed cells it is counted how many are the same', () => {
  const rows = cellRows([cell('modified', 2), cell('deleted', 3), cell('added', 3), cell('modified', 9)]);
  assert.deepEqual(
    rows.map(({ same }) => same),
    [2, 0, 0, 5]
  );
});
