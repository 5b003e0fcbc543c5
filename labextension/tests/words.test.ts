/**
 * The words of the panel.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alwaysPatterns, askText, outcomeText } from '../src/asks';
import { branchFor } from '../src/panel/branch';
import { fileAndLine, fullPath } from '../src/session/words';
import { age, baseText, changedFiles, worktreeTags, worktreeTitle } from '../src/panel/words';
import { ask, worktree } from './records';

/** Translates nothing. */
const trans: any = {
  __: (text: string, ...values: unknown[]) => text.replace(/%(\d)/g, (_, n) => String(values[n - 1])),
  _n: (one: string, many: string, n: number) => (n === 1 ? one : many).replace('%1', String(n))
};

test('an age is short', () => {
  const now = Date.parse('2026-01-10T00:00:00Z');
  const ages = [
    '2026-01-09T23:59:30Z',
    '2026-01-09T23:18:00Z',
    '2026-01-09T21:00:00Z',
    '2026-01-01T00:00:00Z',
    'no time'
  ];
  assert.deepEqual(
    ages.map(when => age(when, now, trans)),
    ['now', '42 min', '3 h', '9 d', '']
  );
});

test('an ask tells what would be done, and to what', () => {
  const outside = ask('p', {
    permission: 'external_directory',
    patterns: ['/etc/*'],
    metadata: { filepath: '/etc/hosts' }
  });
  assert.deepEqual(askText(outside, trans), { deed: 'outside the worktree:', object: '/etc/hosts' });
  const bash = ask('p', { patterns: ['ls', 'rm x'], metadata: {} });
  assert.deepEqual(askText(bash, trans), { deed: 'run', object: 'ls, rm x' });
});

test('what is allowed is what is read: characters that hide or turn round others are shown', () => {
  const sly = ask('p', { patterns: ['ls \u202egpj.sh\u200b\x1b[2K\nnext'], always: ['\u2066*'] });
  assert.equal(askText(sly, trans).object, 'ls \\u202egpj.sh\\u200b\\u001b[2K\nnext');
  assert.deepEqual(alwaysPatterns(sly), ['\\u2066*']);
});

test('always allows what the server says, else the patterns', () => {
  assert.deepEqual(alwaysPatterns(ask('p', { patterns: ['a'], always: ['b'] })), ['b']);
  assert.deepEqual(alwaysPatterns(ask('p', { patterns: ['a'] })), ['a']);
  assert.deepEqual(alwaysPatterns(ask('p', { patterns: ['a'], always: [] })), []);
});

test('an answer says whose it was', () => {
  const of = (reply: any, mine: boolean) => outcomeText({ ask: ask('p'), phase: 'done', reply, mine }, trans);
  assert.equal(of('once', true), 'Allowed once');
  assert.equal(of('reject', false), 'Answered elsewhere: rejected');
  assert.equal(of('gone', false), 'Answered elsewhere');
});

test('a worktree shows its marks', () => {
  const marks = (facts: object) => worktreeTags(worktree('w', facts), trans).map(tag => tag.text);
  assert.deepEqual(marks({}), []);
  assert.deepEqual(marks({ state: 'missing', prunable: true, locked: true }), ['missing', 'locked']);
  assert.deepEqual(marks({ prunable: true, merged: 'squashed' }), ['prunable', 'merged']);
  assert.deepEqual(
    marks({ operation: 'rebase', detached: true, changes: { modified: 0, untracked: 0, conflicted: 2 } }),
    ['rebase', 'conflicts', 'detached']
  );
  assert.deepEqual(marks({ is_main: true, merged: 'yes' }), ['main']);
  const base = { ref: 'main', sha: 'c1' };
  assert.deepEqual(marks({ merged: 'yes', base, head: 'c2' }), ['merged']);
  assert.deepEqual(marks({ merged: 'yes', base, head: 'c1' }), []);
  // Whether it had commits of its own is not known.
  assert.deepEqual(marks({ merged: 'yes' }), []);
  assert.equal(
    worktreeTitle(worktree('w', { branch: null, detached: true, head: 'abcdef0123' })),
    'w @ abcdef0'
  );
  assert.equal(changedFiles(worktree('w')), null);
});

test('a link to a file says where in it', () => {
  assert.deepEqual(fileAndLine('src/a.py:12'), { path: 'src/a.py', line: 12 });
  assert.deepEqual(fileAndLine('./a.py:12:3'), { path: './a.py', line: 12 });
  assert.deepEqual(fileAndLine('/x/a.py#L7-L9'), { path: '/x/a.py', line: 7 });
  assert.deepEqual(fileAndLine('a:b.py'), { path: 'a:b.py' });
  assert.equal(fullPath('./a.py', '/w/'), '/w/a.py');
});

test('a base is told with its age when it is not new', () => {
  assert.equal(
    baseText({ ref: 'origin/main', sha: 'a1b2c3d4', age_seconds: 180_000 }, trans),
    'origin/main (a1b2c3d, 2 d old)'
  );
  assert.equal(baseText({ ref: 'main', sha: 'a1b2c3d4', age_seconds: 5 }, trans), 'main (a1b2c3d)');
});

test('a name is a branch as it is, a sentence becomes one', () => {
  assert.equal(branchFor(' feat/x_1.y '), 'feat/x_1.y');
  assert.equal(branchFor('-x'), '-x');
  assert.equal(branchFor('Fix the loader, please!'), 'fix-the-loader-please');
  assert.equal(branchFor('Ünï côde: / größe'), 'uni-code/große');
  assert.equal(branchFor('x '.repeat(100)).length <= 48, true);
  assert.equal(branchFor('! ?'), '');
});
