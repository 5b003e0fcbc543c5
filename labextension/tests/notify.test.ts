/**
 * What is told when nobody looks, and what is not.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Signal } from '@lumino/signaling';
import { OcmanModel } from '../src/model';
import { Note, Notifier } from '../src/notify';
import { Session } from '../src/records';
import { EMPTY, State, applyEvent, applySnapshot, closeAsk } from '../src/state';
import { ask, key, session, snapshot } from './records';

/** A model that is only its state, and a screen that remembers. */
function start(first: Parameters<typeof snapshot>[0] = {}) {
  const model = {
    isLoaded: true,
    connection: { phase: 'live' },
    state: applySnapshot(EMPTY, snapshot(first)) as State
  };
  const changed = new Signal<object, void>(model);
  const seen = new Set<string>();
  const unwanted = new Set<Note['kind']>();
  const screen = new Map<string, Note>();
  const told: string[] = [];
  const notifier = new Notifier({
    model: Object.assign(model, { changed }) as unknown as OcmanModel,
    wants: kind => !unwanted.has(kind),
    sees: sessionKey => seen.has(sessionKey),
    show: (note, earlier) => {
      const id = earlier ?? `n${told.length}`;
      told.push(`${note.kind} ${note.title} ${note.asks.length}`);
      screen.set(id, note);
      return id;
    },
    dismiss: id => void screen.delete(id)
  });
  changed.emit();
  const event = (type: string, data: object) => {
    model.state = applyEvent(model.state, { type, host: 'local', data });
    changed.emit();
  };
  const status = (id: string, status: Session['status']) =>
    event('session.status', { id, directory: '/r', status });
  return { model, notifier, changed, seen, unwanted, screen, told, event, status };
}

const SESSIONS = { sessions: [session('a', { title: 'Fix', status: 'busy' }), session('b')] };

test('an ask is told once, a second one of the session changes what stands there', () => {
  const { event, told, screen, changed } = start(SESSIONS);
  event('ask.created', ask('p'));
  changed.emit();
  assert.deepEqual(told, ['needs_you Fix 1']);
  event('ask.created', ask('q'));
  assert.deepEqual(told, ['needs_you Fix 1', 'needs_you Fix 2']);
  assert.equal(screen.size, 1);
});

test('it is taken back when the ask is answered, here or elsewhere', () => {
  const { model, event, screen, changed } = start(SESSIONS);
  event('ask.created', ask('p'));
  event('ask.created', ask('q', { session_id: 'b' }));
  assert.equal(screen.size, 2);
  event('ask.resolved', { id: 'p', session_id: 'a', reply: 'once' });
  model.state = closeAsk(model.state, key('q'), 'gone', false);
  changed.emit();
  assert.equal(screen.size, 0);
});

test('asks that waited when the page came are told too', () => {
  assert.deepEqual(start({ ...SESSIONS, asks: [ask('p')] }).told, ['needs_you Fix 1']);
});

test('nothing is told of what is looked at, also not when it is left', () => {
  const { event, seen, told, notifier, status } = start(SESSIONS);
  seen.add(key('a'));
  event('ask.created', ask('p'));
  status('a', 'idle');
  seen.clear();
  notifier.look();
  assert.deepEqual(told, []);
});

test('it is taken back when the user looks', () => {
  const { event, seen, screen, notifier } = start(SESSIONS);
  event('ask.created', ask('p'));
  assert.equal(screen.size, 1);
  seen.add(key('a'));
  notifier.look();
  assert.equal(screen.size, 0);
});

test('finished and failed are told when work ends, and only then', () => {
  const { status, told, screen } = start(SESSIONS);
  status('a', 'needs_you');
  status('a', 'busy');
  assert.deepEqual(told, []);
  status('a', 'idle');
  assert.deepEqual(told, ['finished Fix 0']);
  status('a', 'busy');
  assert.equal(screen.size, 0);
  status('a', 'error');
  assert.deepEqual(told, ['finished Fix 0', 'failed Fix 0']);
  status('b', 'error');
  assert.equal(told.length, 2);
});

test('a session that is gone has nothing to tell', () => {
  const { status, event, screen } = start(SESSIONS);
  status('a', 'idle');
  assert.equal(screen.size, 1);
  event('session.removed', { id: 'a', directory: '/r' });
  assert.equal(screen.size, 0);
});

test('a lost stream finishes nothing, and subagents are not told of', () => {
  const { model, told, changed } = start({
    sessions: [session('a', { status: 'busy' }), session('child', { status: 'busy', parent_id: 'a' })]
  });
  model.connection = { phase: 'reconnecting' };
  model.state = applySnapshot(model.state, snapshot({ sessions: [session('a', { status: 'unknown' })] }));
  changed.emit();
  model.connection = { phase: 'live' };
  changed.emit();
  model.state = applySnapshot(model.state, snapshot({ sessions: [session('child', { parent_id: 'a' })] }));
  changed.emit();
  assert.deepEqual(told, []);
});

test('what happened while the stream was away is told when it is back', () => {
  const { model, told, changed } = start(SESSIONS);
  model.state = applySnapshot(model.state, snapshot({ sessions: [session('a', { title: 'Fix' })] }));
  changed.emit();
  assert.deepEqual(told, ['finished Fix 0']);
});

test('each kind can be switched off', () => {
  const { event, unwanted, told, status } = start(SESSIONS);
  unwanted.add('needs_you').add('finished');
  event('ask.created', ask('p'));
  status('a', 'idle');
  assert.deepEqual(told, []);
});
