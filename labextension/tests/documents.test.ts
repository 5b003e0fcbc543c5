/**
 * Open documents that follow the disk, and what of them is a person's.
 */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Signal } from '@lumino/signaling';
import {
  Conflict,
  FILE_SETTLES,
  Follower,
  OpenDocument,
  SeenParts,
  Version,
  touchedBy
} from '../src/follower';
import { HostEvent } from '../src/records';
import { EMPTY, applySnapshot } from '../src/state';
import { Unsaved } from '../src/unsaved';
import { session, snapshot } from './records';
import { settle, timed as check } from './timing';

/** One session, in a folder of a worktree. */
const STATE = applySnapshot(EMPTY, snapshot({ sessions: [session('a', { directory: '/r/w/sub' })] }));

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
  const handle = async (type: string, data: object, host = 'local') => {
    follower.handle({ type, host, data }, STATE);
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

check('who gives up theirs gets what is on disk', async () => {
  const document = new FakeDocument('/r/w/a.py');
  const { follower } = follow(document);
  document.isDirty = true;
  document.disk = version('2');
  await follower.replace(document);
  assert.deepEqual([document.known?.hash, document.told], ['2', [null]]);
  document.disk = null;
  await follower.replace(document);
  assert.deepEqual([document.reloads, document.told], [1, [null, 'deleted']]);
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
  const seen = new SeenParts();
  const touched = (event: HostEvent) => touchedBy(event, STATE, seen);
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
