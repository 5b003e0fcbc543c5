/**
 * The diff tab's model, and open documents that follow the disk.
 */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Signal } from '@lumino/signaling';
import { CellChange, cellChanges, cellRows } from '../src/diff/notebook_diff';
import { DiffModel, SETTLES } from '../src/diff/state';
import { ApiError } from '../src/errors';
import {
  Conflict,
  FILE_SETTLES,
  Follower,
  OpenDocument,
  SeenParts,
  Version,
  touchedBy
} from '../src/follower';
import { OcmanModel } from '../src/model';
import { Diff, FileDiff, HostEvent } from '../src/records';
import { EMPTY, State, applySnapshot } from '../src/state';
import { Unsaved } from '../src/unsaved';
import { list, session, snapshot, worktree } from './records';

function check(name: string, body: () => Promise<void>): void {
  test(name, async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
    try {
      await body();
    } finally {
      mock.timers.reset();
    }
  });
}

/** Let promises run that are ready. */
async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await Promise.resolve();
  }
}

function file(path: string, facts: Partial<FileDiff> = {}): FileDiff {
  return {
    path,
    status: 'modified',
    additions: 1,
    deletions: 1,
    binary: false,
    notebook: false,
    patch: `@@ -1 +1 @@\n-a\n+${path}\n`,
    ...facts
  };
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

// --- open documents ------------------------------------------------------------------------------

const version = (hash: string, facts: Partial<Version> = {}): Version => ({
  hash,
  modified: `time of ${hash}`,
  ...facts
});

class FakeDocument implements OpenDocument {
  constructor(readonly path: string) {}
  isDirty = false;
  isSaving = false;
  known: Version | null = version('1');
  disk: Version | null | Error = version('1');
  looks = 0;
  reloads = 0;
  told: (Conflict | null)[] = [];

  async onDisk(): Promise<Version | null> {
    this.looks += 1;
    if (this.disk instanceof Error) {
      throw this.disk;
    }
    return this.disk;
  }

  async reload(read: Version): Promise<void> {
    this.reloads += 1;
    this.known = read;
  }
}

function follow(...documents: FakeDocument[]) {
  const lost: [string, string[]][] = [];
  const follower = new Follower<FakeDocument>({
    documents: () => documents,
    tell: (document, conflict) => document.told.push(conflict),
    lost: (path, inside) => lost.push([path, inside.map(document => document.path)])
  });
  const state = new FakeModel().state;
  const handle = async (type: string, data: object, host = 'local') => {
    follower.handle({ type, host, data }, state);
    mock.timers.tick(FILE_SETTLES);
    await settle();
  };
  return { follower, handle, lost };
}

const idle = { id: 'a', directory: '/r/w/sub', status: 'idle' };
const changed = { path: '/r/w', state: 'ok' };

check('a clean document that changed on disk is read again, once', async () => {
  const document = new FakeDocument('/r/w/sub/a.py');
  const other = new FakeDocument('/r/wide/a.py');
  const { handle } = follow(document, other);
  document.disk = other.disk = version('2');
  await handle('session.status', idle);
  assert.deepEqual([document.reloads, document.told], [1, [null]]);
  await handle('worktree.changed', changed);
  assert.deepEqual([document.reloads, document.looks], [1, 2]);
  assert.equal(other.looks, 0);
});

check('nothing is read again that is the same: by hash, else by time', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { handle } = follow(document);
  document.disk = { hash: '1', modified: 'later' };
  await handle('worktree.changed', changed);
  assert.equal(document.reloads, 0);
  document.known = { modified: 'then' };
  document.disk = { hash: '1', modified: 'then' };
  await handle('worktree.changed', changed);
  assert.equal(document.reloads, 0);
  document.disk = { hash: '1', modified: 'later' };
  await handle('worktree.changed', changed);
  assert.equal(document.reloads, 1);
});

check('a dirty document is left alone and told of, until it is what is on disk', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { handle, follower } = follow(document);
  document.isDirty = true;
  document.disk = version('2');
  await handle('worktree.changed', changed);
  assert.deepEqual([document.reloads, document.told], [0, ['changed']]);
  document.known = version('2');
  document.isDirty = false;
  await follower.check(document);
  assert.deepEqual(document.told, ['changed', null]);
});

check('typed while the disk was asked: not read again', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { follower } = follow(document);
  document.disk = version('2');
  const checked = follower.check(document);
  document.isDirty = true;
  await checked;
  assert.deepEqual([document.reloads, document.told], [0, ['changed']]);
});

check('who keeps theirs hears of it again only when the disk changes again', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { handle, follower } = follow(document);
  document.isDirty = true;
  document.disk = version('2');
  await handle('worktree.changed', changed);
  await follower.keep(document);
  await handle('worktree.changed', changed);
  assert.deepEqual(document.told, ['changed', null]);
  document.disk = version('3');
  await handle('worktree.changed', changed);
  assert.deepEqual(document.told, ['changed', null, 'changed']);
});

check('a file that is gone is told, and its document stays as it is', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { handle } = follow(document);
  document.disk = null;
  await handle('worktree.changed', changed);
  assert.deepEqual([document.reloads, document.told], [0, ['deleted']]);
});

check('a document that is being saved, or not yet read, is not looked at', async () => {
  const saving = new FakeDocument('/r/w/a.py');
  const young = new FakeDocument('/r/w/b.py');
  const { handle } = follow(saving, young);
  saving.isSaving = true;
  young.known = null;
  await handle('worktree.changed', changed);
  assert.deepEqual([saving.looks, young.looks], [0, 0]);
});

check('changes that come while a document is looked at are looked at after it', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { follower } = follow(document);
  const first = follower.check(document);
  void follower.check(document);
  void follower.check(document);
  await first;
  mock.timers.tick(FILE_SETTLES);
  await settle();
  assert.equal(document.looks, 2);
});

check('after a gap in the stream every document is looked at', async () => {
  const documents = [new FakeDocument('/r/w/a.py'), new FakeDocument('/elsewhere/b.py')];
  const { follower } = follow(...documents);
  documents.forEach(document => (document.disk = version('2')));
  follower.checkAll();
  mock.timers.tick(FILE_SETTLES);
  await settle();
  assert.deepEqual(
    documents.map(({ reloads }) => reloads),
    [1, 1]
  );
});

check('a server that does not answer is no conflict', async () => {
  const warn = mock.method(console, 'warn', () => undefined);
  const document = new FakeDocument('/r/w/a.py');
  const { handle } = follow(document);
  document.disk = new Error('gone');
  await handle('worktree.changed', changed);
  assert.deepEqual(document.told, []);
  assert.equal(warn.mock.callCount(), 1);
  warn.mock.restore();
});

check('a worktree that is removed under open documents is told once, until it is back', async () => {
  const { handle, lost } = follow(new FakeDocument('/r/w/a.py'), new FakeDocument('/r/wide/b.py'));
  await handle('worktree.removed', { path: '/r/w', repo_root: '/r' });
  await handle('worktree.changed', { path: '/r/w', state: 'missing' });
  assert.deepEqual(lost, [['/r/w', ['/r/w/a.py']]]);
  await handle('worktree.changed', changed);
  await handle('worktree.removed', { path: '/r/w', repo_root: '/r' });
  assert.equal(lost.length, 2);
});

function tool(id: string, name: string, state: object): object {
  return { id, messageID: 'm', sessionID: 'a', type: 'tool', tool: name, state };
}

function message(...parts: object[]): HostEvent {
  return {
    type: 'message.updated',
    host: 'local',
    data: { session_id: 'a', message: { info: { id: 'm', sessionID: 'a' }, parts } }
  };
}

test('what a message says about files', () => {
  const { state } = new FakeModel();
  const seen = new SeenParts();
  const touched = (event: HostEvent) => touchedBy(event, state, seen);
  const done = (input: object, metadata: object = {}) => ({ status: 'completed', input, metadata });
  const edit = message(
    tool('1', 'edit', done({ filePath: '/r/w/a.py' }, { filediff: { file: '/r/w/a.py' } })),
    tool('2', 'write', done({ filePath: 'b.py' })),
    tool('3', 'read', done({ filePath: '/r/w/c.py' })),
    tool('4', 'edit', { status: 'running', input: { filePath: '/r/w/d.py' } }),
    { id: '5', type: 'text', text: '/r/w/e.py' }
  );
  assert.deepEqual(touched(edit), { files: ['/r/w/a.py', '/r/w/sub/b.py'], folders: [], lost: null });
  // The same parts come again with each change of the message.
  assert.deepEqual(touched(edit), { files: [], folders: [], lost: null });
  assert.deepEqual(
    touched(
      message(
        tool('6', 'apply_patch', done({}, { files: [{ filePath: '/r/w/f', movePath: '/r/w/g' }] })),
        tool('7', 'bash', done({ command: 'sed -i s/a/b/ x' })),
        { id: '8', type: 'patch', files: ['/r/w/h'] }
      )
    ),
    { files: ['/r/w/f', '/r/w/g', '/r/w/h'], folders: ['/r/w/sub'], lost: null }
  );
  assert.deepEqual(touched({ ...message(tool('9', 'bash', done({}))), host: 'far' }).folders, []);
  assert.deepEqual(
    touched({ type: 'message.updated', host: 'local', data: { session_id: 'a' } }),
    { files: [], folders: [], lost: null }
  );
});

test('parts that were seen do not pile up', () => {
  const seen = new SeenParts();
  for (let i = 0; i < 20_000; i++) {
    assert.ok(seen.add(String(i)));
  }
  assert.ok(!seen.add('19999'));
  assert.ok(seen.add('0'));
});

// --- what a person made --------------------------------------------------------------------------

/** As a notebook's context, as far as it is looked at; `null` metadata: another document's. */
class FakeContext {
  fileChanged = new Signal<this, void>(this);
  isReady = true;
  isDisposed = false;
  sessionContext = { session: { kernel: {} } as { kernel: object | null } };
  model: any;

  constructor(metadata: Record<string, unknown> | null, dirty = false) {
    const model: any = { dirty, contentChanged: new Signal<object, void>({}) };
    if (metadata) {
      model.metadataChanged = new Signal<object, { key: string }>({});
      model.getMetadata = (key: string) => metadata[key];
      model.setMetadata = (key: string, value: unknown) => {
        metadata[key] = value;
        model.dirty = true;
        model.metadataChanged.emit({ key });
        model.contentChanged.emit();
      };
    }
    this.model = model;
  }

  type(): void {
    this.model.dirty = true;
    this.model.contentChanged.emit();
  }
}

const unsavedOf = (context: FakeContext) => new Unsaved(context as any);

test('a notebook that only its kernel wrote to holds nothing of a person', () => {
  const context = new FakeContext({});
  const unsaved = unsavedOf(context);
  context.model.setMetadata('language_info', { name: 'python' });
  assert.deepEqual([context.model.dirty, unsaved.isThere], [true, false]);
  context.model.setMetadata('title', 'Mine');
  assert.ok(unsaved.isThere);
});

test('what was typed counts, also beside what the kernel wrote, until it is saved', () => {
  const context = new FakeContext({});
  const unsaved = unsavedOf(context);
  context.model.setMetadata('kernelspec', { name: 'python3' });
  context.type();
  assert.ok(unsaved.isThere);
  // A new name tells of a changed file too.
  context.fileChanged.emit();
  assert.ok(unsaved.isThere);
  context.model.dirty = false;
  context.fileChanged.emit();
  context.model.setMetadata('kernelspec', { name: 'other' });
  assert.ok(!unsaved.isThere);
});

test('a document that was dirty when it was first seen, and any text, is taken at its word', () => {
  assert.ok(unsavedOf(new FakeContext({}, true)).isThere);
  const text = new FakeContext(null);
  const unsaved = unsavedOf(text);
  assert.ok(!unsaved.isThere);
  text.type();
  assert.ok(unsaved.isThere);
});

test('a notebook that is read again keeps what its kernel said, and nothing else', async () => {
  const metadata: Record<string, unknown> = { kernelspec: { name: 'python3' }, title: 'Mine' };
  const context = new FakeContext(metadata);
  const unsaved = unsavedOf(context);
  const read = async () => {
    delete metadata.kernelspec;
    metadata.title = 'Theirs';
    context.model.contentChanged.emit();
  };
  await unsaved.replace(read);
  assert.deepEqual(metadata, { kernelspec: { name: 'python3' }, title: 'Theirs' });
  assert.ok(!unsaved.isThere);
  context.sessionContext.session.kernel = null;
  await unsaved.replace(read);
  assert.deepEqual([metadata.kernelspec, context.model.dirty], [undefined, false]);
});
