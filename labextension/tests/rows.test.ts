/**
 * Which rows the tree shows.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Creation } from '../src/creations';
import { SESSIONS_AT_FIRST, View, buildTree } from '../src/panel/rows';
import { Snapshot } from '../src/records';
import { EMPTY, applySnapshot } from '../src/state';
import { key, list, session, snapshot, worktree } from './records';

const VIEW: View = { toggled: new Map(), unfolded: new Set(), filter: '', activeOnly: false, here: null };

function tree(
  facts: Partial<Snapshot>,
  view: Partial<View> = {},
  creations: ReadonlyMap<string, Creation> = new Map()
) {
  const built = buildTree(applySnapshot(EMPTY, snapshot(facts)), creations, { ...VIEW, ...view });
  const drawn = built.rows.map(row => {
    const name =
      row.kind === 'repository'
        ? row.repository.name
        : row.kind === 'worktree'
          ? row.worktree.name
          : row.kind === 'session'
            ? row.session.id
            : row.kind === 'creation'
              ? row.creation.request.branch
              : row.kind;
    return '  '.repeat(row.level - 1) + name;
  });
  return { ...built, drawn };
}

const main = worktree('main', { path: '/r', is_main: true });

test('the main checkout is first, the others by name, sessions by age', () => {
  const { drawn, rows } = tree({
    repositories: [list([worktree('w10'), worktree('w9'), main])],
    sessions: [
      session('old', { directory: '/r/w9', created: '2026-01-01T00:00:00Z' }),
      session('new', { directory: '/r/w9', created: '2026-01-02T00:00:00Z' })
    ]
  });
  assert.deepEqual(drawn, ['r', '  main', '  w9', '    new', '    old', '  w10']);
  assert.equal(new Set(rows.map(row => row.key)).size, rows.length);
});

test('a session stands under the nearest worktree at or above its directory', () => {
  const { drawn } = tree({
    repositories: [list([main, worktree('w'), worktree('w-5')])],
    sessions: [
      session('sub', { directory: '/r/w/deep/down' }),
      session('near', { directory: '/r/w-5' }),
      session('checkout', { directory: '/r/src' })
    ]
  });
  assert.deepEqual(drawn, ['r', '  main', '    checkout', '  w', '    sub', '  w-5', '    near']);
});

test('sessions of a folder that is no worktree are still there', () => {
  const { drawn } = tree(
    {
      repositories: [list([worktree('w')], { repo_root: '/r' })],
      sessions: [
        session('lost', { directory: '/gone' }),
        session('foreign', { directory: '/x', repo_root: null })
      ]
    },
    {
      toggled: new Map([
        ['elsewhere\nlocal\n/r', true],
        ['nowhere', true]
      ])
    }
  );
  assert.deepEqual(drawn, ['r', '  w', '  elsewhere', '    lost', 'elsewhere', '  foreign']);
});

test('sessions of subagents are not listed', () => {
  const { drawn } = tree({
    repositories: [list([worktree('w')])],
    sessions: [session('child', { parent_id: 'x' })]
  });
  assert.deepEqual(drawn, ['r', '  w']);
});

test('a filter says how much it hides, and opens what it found', () => {
  const facts = {
    repositories: [list([main, worktree('loader'), worktree('plots')])],
    sessions: [
      session('a', { directory: '/r/plots', title: 'Fix the LOADER' }),
      session('b', { directory: '/r/plots' })
    ]
  };
  const found = tree(facts, { filter: 'loader', toggled: new Map([[key('/r'), false]]) });
  assert.deepEqual(found.drawn, ['r', '  loader', '  plots', '    a']);
  assert.equal(found.hidden, 2);
  assert.deepEqual(tree(facts, { filter: 'nothing' }).drawn, []);
});

test('only active sessions, on demand', () => {
  const { drawn, hidden } = tree(
    {
      repositories: [list([worktree('v'), worktree('w')])],
      sessions: [session('a', { status: 'busy' }), session('b', { status: 'needs_you' }), session('c')]
    },
    { activeOnly: true }
  );
  assert.deepEqual(drawn, ['r', '  w', '    a', '    b']);
  assert.equal(hidden, 2);
});

test('many sessions of a worktree are folded, but never an active one', () => {
  const sessions = Array.from({ length: 100 }, (_, i) =>
    session(`s${i}`, { created: `2026-01-01T00:00:${i}Z` })
  );
  sessions.push(session('asks', { status: 'needs_you', created: '2020-01-01T00:00:00Z' }));
  const facts = { repositories: [list([worktree('w')])], sessions };
  const { rows } = tree(facts);
  const more = rows.find(row => row.kind === 'more');
  assert.equal(more?.kind === 'more' && more.hidden, 100 - SESSIONS_AT_FIRST);
  assert.ok(rows.some(row => row.kind === 'session' && row.session.id === 'asks'));
  assert.equal(tree(facts, { unfolded: new Set([more!.parent!]) }).rows.length, 2 + 101);
});

test('the repository of the current folder is first and open, an idle other one is closed', () => {
  const repositories = [
    list([worktree('v', { path: '/a/v' })], { repo_root: '/a' }),
    list([worktree('w', { path: '/b/w' })], { repo_root: '/b' })
  ];
  assert.deepEqual(tree({ repositories }, { here: key('/b') }).drawn, ['b', '  w', 'a']);
});

test('namesakes tell their folder', () => {
  const { rows } = tree({ repositories: [list([], { repo_root: '/a/x' }), list([], { repo_root: '/b/x' })] });
  assert.deepEqual(
    rows.map(row => row.kind === 'repository' && row.folder),
    ['/a', '/b']
  );
});

test('a worktree session that is being made has a row at once', () => {
  const creation: Creation = {
    id: 'c',
    request: { directory: '/r', branch: 'idea' },
    repository: key('/r'),
    phase: 'creating'
  };
  assert.deepEqual(tree({ repositories: [list([main])] }, {}, new Map([['c', creation]])).drawn, [
    'r',
    '  idea',
    '  main'
  ]);
});

test('every row knows its place among its siblings', () => {
  const { rows } = tree({ repositories: [list([main, worktree('w')])], sessions: [session('a')] });
  assert.deepEqual(
    rows.map(row => [row.level, row.position, row.siblings, row.expanded]),
    [
      [1, 1, 1, true],
      [2, 1, 2, null],
      [2, 2, 2, true],
      [3, 1, 1, null]
    ]
  );
});
