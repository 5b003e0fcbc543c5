/**
 * The composer: drafts that are not lost, what a text means, suggestions, sending; and the words of asks.
 */
import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { alwaysSentence, askFacts, askSentence, isOutside, runningTool } from '../src/asks';
import { ApiError } from '../src/errors';
import { isComplete, labelsOf, noAnswers } from '../src/questions';
import { SessionOptions } from '../src/records';
import {
  ASKED_AFTER,
  Completion,
  SessionChoices,
  applyChoice,
  deedOf,
  matching,
  mentioned,
  tokenAt
} from '../src/session/completion';
import { Drafts, LastWords, MOST_ENTRIES, MOST_SESSIONS, SAVED_AFTER, SavedDrafts } from '../src/session/drafts';
import { Sending, isBlank, whyNot } from '../src/session/sending';
import { ask, key, session } from './records';
import { settle } from './timing';

/** Translates nothing. */
const trans: any = {
  __: (text: string, ...values: unknown[]) => text.replace(/%(\d)/g, (_, n) => String(values[n - 1])),
  _n: (one: string, many: string, n: number) => (n === 1 ? one : many).replace('%1', String(n))
};

/** A test on a clock that stands still. */
function timed(name: string, body: () => Promise<void> | void): void {
  test(name, async () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      await body();
    } finally {
      mock.timers.reset();
    }
  });
}

// --- drafts --------------------------------------------------------------------------------------

timed('a draft is saved a moment after it changed, and at once when the page goes', () => {
  const saved: SavedDrafts[] = [];
  const drafts = new Drafts(one => saved.push(one));
  drafts.set('a', { text: 'h' });
  drafts.set('a', { text: 'hello' });
  assert.equal(saved.length, 0);
  mock.timers.tick(SAVED_AFTER);
  assert.deepEqual(
    saved.map(({ drafts }) => drafts!.map(([key, { text }]) => [key, text])),
    [[['a', 'hello']]]
  );
  drafts.flush();
  assert.equal(saved.length, 1);
  drafts.set('a', { model: 'p/m' });
  drafts.dispose();
  assert.equal(saved.length, 2);
  const again = new Drafts();
  again.restore(JSON.parse(JSON.stringify(saved[1])));
  assert.deepEqual([again.get('a').text, again.get('a').model, again.get('b').text], ['hello', 'p/m', '']);
});

timed('what was written before the saved drafts came is newer', () => {
  const drafts = new Drafts();
  drafts.set('a', { text: 'new' });
  drafts.restore({
    drafts: [
      ['a', { text: 'old', agent: 'plan', history: ['x'] }],
      ['b', { text: 'other' }]
    ]
  });
  const { text, agent, history } = drafts.get('a');
  assert.deepEqual([text, agent, history], ['new', 'plan', ['x']]);
  assert.equal(drafts.get('b').text, 'other');
  drafts.dispose();
});

timed('what is no draft is not taken over', () => {
  const drafts = new Drafts();
  for (const nonsense of [null, {}, { drafts: 3 }, { drafts: [null, ['a'], [1, {}], ['b', { text: 3 }]] }]) {
    drafts.restore(nonsense as any);
  }
  assert.deepEqual(drafts.get('b'), { text: '', files: [], agent: null, model: null, history: [] });
  drafts.dispose();
});

timed('the sessions and the entries that are remembered are bounded; the oldest go', () => {
  let saved: SavedDrafts = {};
  const drafts = new Drafts(one => (saved = one));
  for (let i = 0; i < MOST_SESSIONS; i++) {
    drafts.set(`s${i}`, { text: `${i}` });
  }
  drafts.set('s0', { text: 'again' });
  drafts.set('new', { text: 'new' });
  assert.deepEqual([drafts.get('s0').text, drafts.get('s1').text, drafts.get('s2').text], ['again', '', '2']);
  for (let i = 0; i < MOST_ENTRIES + 10; i++) {
    drafts.remember('new', `prompt ${i}`);
    drafts.mention('new', `file ${i}`);
  }
  drafts.remember('new', 'prompt 30');
  drafts.remember('new', '  ');
  const { history, files } = drafts.get('new');
  const ends = [history[0], history[history.length - 1]];
  assert.deepEqual([history.length, ends], [MOST_ENTRIES, ['prompt 10', 'prompt 30']]);
  assert.equal(files.length, MOST_ENTRIES);
  drafts.forget('s0');
  drafts.dispose();
  assert.equal(saved.drafts!.length, MOST_SESSIONS - 1);
});

// --- what a text means ---------------------------------------------------------------------------

test('a text is a prompt, a command of the shell or of the agent, by its first character', () => {
  assert.deepEqual(deedOf(' fix it \n'), { kind: 'prompt', text: 'fix it' });
  assert.deepEqual(deedOf('! ls -l '), { kind: 'shell', command: 'ls -l' });
  assert.deepEqual(deedOf('/review'), { kind: 'command', name: 'review', args: '' });
  assert.deepEqual(deedOf('/review a b\nc'), { kind: 'command', name: 'review', args: 'a b\nc' });
  assert.deepEqual(deedOf(' /etc/hosts'), { kind: 'prompt', text: '/etc/hosts' });
  assert.deepEqual(deedOf('/ x'), { kind: 'prompt', text: '/ x' });
  assert.deepEqual([isBlank('! '), isBlank(' \n'), isBlank('/x'), isBlank('!a')], [true, true, false, false]);
});

test('what is completed at the caret', () => {
  const at = (marked: string) => {
    const caret = marked.indexOf('|');
    const token = tokenAt(marked.replace('|', ''), caret);
    return token && [token.kind, token.query, token.from, token.to];
  };
  assert.deepEqual(at('@|'), ['file', '', 0, 1]);
  assert.deepEqual(at('see @src/a|.py now'), ['file', 'src/a', 4, 13]);
  assert.deepEqual(at('see (@a|) now'), ['file', 'a', 5, 7]);
  assert.deepEqual(at('line\n@x|'), ['file', 'x', 5, 7]);
  assert.equal(at('me@here.org|'), null);
  assert.equal(at('@a |'), null);
  assert.equal(at('|@a'), null);
  assert.deepEqual(at('/re|'), ['command', 're', 0, 3]);
  assert.deepEqual(at('/r|eview x'), ['command', 'r', 0, 7]);
  assert.equal(at('|/re'), null);
  assert.equal(at('a /re|'), null);
  assert.equal(at(' /re|'), null);
  assert.equal(at('/review x|'), null);
  assert.deepEqual(at('/review @x|'), ['file', 'x', 8, 10]);
  assert.equal(at('!cat @x|'), null);
});

test('a choice takes the place of what was typed', () => {
  const apply = (text: string, caret: number, choice: string) =>
    applyChoice(text, tokenAt(text, caret)!, choice);
  assert.deepEqual(apply('see @sr', 7, 'src/a b.py'), { text: 'see @src/a b.py ', caret: 16 });
  assert.deepEqual(apply('see @sr now', 7, 'src/a.py'), { text: 'see @src/a.py now', caret: 14 });
  assert.deepEqual(apply('/re', 2, 'review'), { text: '/review ', caret: 8 });
});

test('a file goes along while its mention stands in the text', () => {
  const files = ['a.py', 'a b.py', 'c.py'];
  assert.deepEqual(mentioned('see @a.py, @a b.py.', files), ['a.py', 'a b.py']);
  assert.deepEqual(mentioned('(@c.py)', files), ['c.py']);
  assert.deepEqual(mentioned('x@a.py @a.pyc @a.py.bak', files), []);
  assert.deepEqual(mentioned('@a.pyc @a.py', files), ['a.py']);
});

test('a filter finds words anywhere, and shows first what begins with them', () => {
  const names = ['openai/gpt', 'anthropic/claude gpt-like', 'gpt'];
  assert.deepEqual(
    matching(names, 'GPT', name => name),
    ['gpt', 'openai/gpt', 'anthropic/claude gpt-like']
  );
  assert.deepEqual(
    matching(names, 'like cla', name => name),
    ['anthropic/claude gpt-like']
  );
  assert.equal(matching(names, ' ', name => name).length, 3);
});

// --- suggestions ---------------------------------------------------------------------------------

const OPTIONS: SessionOptions = {
  agents: [{ name: 'build', description: null }],
  models: [{ id: 'p/m', name: 'M', provider: 'P' }],
  commands: [
    { name: 'init', description: 'Begin' },
    { name: 'review', description: 'Look at changes' }
  ],
  default_model: 'p/m'
};

/** An API whose answers the test gives. */
function madeUp(options: () => Promise<SessionOptions> = async () => OPTIONS) {
  const asked: [string, (files: string[]) => void, (reason: unknown) => void][] = [];
  const calls: unknown[][] = [];
  const called =
    (name: string) =>
    async (...args: unknown[]) => {
      calls.push([name, ...args]);
      return true;
    };
  const api: any = {
    options: async (...args: unknown[]) => {
      calls.push(['options', ...args]);
      return options();
    },
    files: (id: string, query: string, host: string) => {
      assert.deepEqual([id, host], ['a', 'local']);
      return new Promise<string[]>((resolve, reject) => asked.push([query, resolve, reject]));
    },
    prompt: called('prompt'),
    shell: called('shell'),
    command: called('command')
  };
  const choices = new SessionChoices(api, key('a'));
  const completion = new Completion(api, key('a'), choices);
  return { api, asked, calls, choices, completion };
}

const values = (completion: Completion) => completion.items.map(({ value }) => value);

timed('files are asked for once the typing stops, and only the last answer counts', async () => {
  const { asked, completion } = madeUp();
  completion.update('@s', 2);
  completion.update('@sr', 3);
  mock.timers.tick(ASKED_AFTER);
  assert.deepEqual(
    asked.map(([query]) => query),
    ['sr']
  );
  completion.update('@src', 4);
  mock.timers.tick(ASKED_AFTER);
  asked[1][1](['src/b.py', 'src/a.py']);
  await settle();
  asked[0][1](['old']);
  await settle();
  assert.deepEqual(values(completion), ['src/b.py', 'src/a.py']);
  assert.ok(completion.isOpen && !completion.isLoading);
  completion.move(-1);
  assert.equal(completion.active, 1);
  completion.move(1);
  assert.equal(completion.active, 0);
  // While the next answer is awaited, what does not fit is not there to be taken.
  completion.update('@srca', 5);
  assert.deepEqual(values(completion), ['src/a.py']);
  const { text, caret, file } = completion.accept()!;
  assert.deepEqual([text, caret, file], ['@src/a.py ', 10, 'src/a.py']);
  assert.equal(completion.isOpen, false);
  completion.dispose();
});

timed('an answer that comes after the token is gone shows nothing', async () => {
  const { asked, completion } = madeUp();
  completion.update('@s', 2);
  mock.timers.tick(ASKED_AFTER);
  completion.update('@s ', 3);
  asked[0][1](['src']);
  await settle();
  assert.deepEqual([completion.token, values(completion)], [null, []]);
  completion.update('@t', 2);
  completion.dispose();
  mock.timers.tick(ASKED_AFTER);
  assert.equal(asked.length, 1);
});

timed('what was closed stays closed until another token is typed', async () => {
  const { completion } = madeUp();
  completion.update('/', 1);
  await settle();
  assert.deepEqual(values(completion), ['init', 'review']);
  completion.close();
  completion.update('/r', 2);
  await settle();
  assert.equal(completion.isOpen, false);
  completion.update('', 0);
  completion.update('/r', 2);
  await settle();
  assert.deepEqual(values(completion), ['review']);
  completion.update('/review', 7);
  await settle();
  assert.equal(completion.isOpen, false, 'nothing is left to complete');
  completion.dispose();
});

timed('files that cannot be listed: the error is there, and goes with the token', async () => {
  const { asked, completion } = madeUp();
  completion.update('@s', 2);
  mock.timers.tick(ASKED_AFTER);
  asked[0][2](new ApiError('no_such_session', 'gone'));
  await settle();
  assert.equal(completion.error?.code, 'no_such_session');
  completion.update('@s ', 3);
  assert.equal(completion.error, null);
  completion.dispose();
});

test('the options of a session are asked for once, and again after a failure', async () => {
  let fails = true;
  const { calls, choices } = madeUp(async () => {
    if (fails) {
      throw ApiError.unreachable();
    }
    return OPTIONS;
  });
  await assert.rejects(choices.load(), /does not answer/);
  assert.equal(choices.error?.code, 'server_unreachable');
  fails = false;
  await Promise.all([choices.load(), choices.load()]);
  await choices.load();
  assert.deepEqual([calls.length, choices.value, choices.error], [2, OPTIONS, null]);
});

// --- sending -------------------------------------------------------------------------------------

function sender(options?: () => Promise<SessionOptions>) {
  const parts = madeUp(options);
  const drafts = new Drafts();
  const sending = new Sending(parts.api, key('a'), drafts, parts.choices);
  const write = (text: string) => drafts.set(key('a'), { text });
  return { ...parts, drafts, sending, write, draft: () => drafts.get(key('a')) };
}

timed('a prompt goes once, with its files, agent and model; then it is history', async () => {
  const { calls, drafts, sending, write, draft } = sender();
  drafts.mention(key('a'), 'a.py');
  drafts.mention(key('a'), 'b.py');
  drafts.set(key('a'), { agent: 'plan', model: 'p/m' });
  write('look at @a.py ');
  const first = sending.send('look at @a.py ');
  assert.ok(sending.isSending);
  await sending.send('look at @a.py ');
  write('look at @a.py and then');
  await first;
  assert.deepEqual(calls, [
    ['prompt', 'a', { text: 'look at @a.py', files: ['a.py'], agent: 'plan', model: 'p/m' }, 'local']
  ]);
  assert.deepEqual([draft().text, draft().history], ['and then', ['look at @a.py ']]);
  drafts.dispose();
});

timed('a prompt that was called back leaves the draft as it is', async () => {
  const { drafts, sending, write, draft } = sender();
  write('again and more');
  await sending.send('again');
  assert.deepEqual([draft().text, draft().history], ['again and more', ['again']]);
  drafts.dispose();
});

timed('a text that was not sent is still there, and the error beside it', async () => {
  const { api, drafts, sending, write, draft } = sender();
  api.prompt = async () => {
    throw ApiError.unreachable();
  };
  write('hello');
  await sending.send('hello');
  assert.deepEqual([draft().text, draft().history, sending.isSending], ['hello', [], false]);
  const problem = sending.problem!;
  assert.ok(problem.kind === 'failed' && /may have arrived/.test(problem.error.hint!));
  api.prompt = async () => true;
  await sending.send('hello');
  assert.deepEqual([draft().text, sending.problem], ['', null]);
  drafts.dispose();
});

timed('the shell and commands have their own calls; what is no command is text only by choice', async () => {
  const { calls, drafts, sending, write, draft } = sender();
  write('!ls -l');
  await sending.send('!ls -l');
  write('/review all');
  await sending.send('/review all');
  write('/etc/hosts is odd');
  await sending.send('/etc/hosts is odd');
  assert.deepEqual(sending.problem, { kind: 'unknown_command', name: 'etc/hosts' });
  assert.equal(draft().text, '/etc/hosts is odd');
  await sending.send('/etc/hosts is odd', true);
  assert.deepEqual(
    calls.filter(([name]) => name !== 'options'),
    [
      ['shell', 'a', 'ls -l', 'local'],
      ['command', 'a', 'review', 'all', 'local'],
      ['prompt', 'a', { text: '/etc/hosts is odd', files: [], agent: null, model: null }, 'local']
    ]
  );
  assert.deepEqual([sending.problem, draft().text], [null, '']);
  drafts.dispose();
});

timed('a command is not sent as text because the commands could not be read', async () => {
  const { calls, drafts, sending, write, draft } = sender(async () => {
    throw new ApiError('opencode_unreachable', 'no');
  });
  write('/review');
  await sending.send('/review');
  assert.equal(sending.problem?.kind, 'failed');
  assert.deepEqual([calls.map(([name]) => name), draft().text], [['options'], '/review']);
  drafts.dispose();
});

test('why a text cannot be sent is said', () => {
  const live = { phase: 'live' } as const;
  const why = (text: string, status: any, connection: any = live) =>
    whyNot(text, status && session('a', { status }), connection, trans);
  assert.equal(why('x', 'idle'), null);
  assert.equal(why('x', 'busy'), null);
  assert.match(why('!x', 'busy')!, /does not queue/);
  assert.match(why('/x', 'needs_you')!, /does not queue/);
  assert.match(why('x', 'directory_missing')!, /folder/);
  assert.match(why('x', null)!, /not loaded/);
  assert.match(why('x', 'idle', { phase: 'connecting' })!, /kept/);
});

// --- asks ----------------------------------------------------------------------------------------

test('a permission shows all of what would be done, with what hides in it', () => {
  const facts = (known: object) => askFacts(ask('p', known)).map(({ kind, text }) => [kind, text]);
  assert.deepEqual(facts({ patterns: ['ls *'] }), [['patterns', 'ls *']]);
  assert.deepEqual(facts({ patterns: ['ls', 'rm x'], metadata: { command: 'ls && rm x\u202e' } }), [
    ['command', 'ls && rm x\\u202e'],
    ['patterns', 'ls\nrm x']
  ]);
  assert.deepEqual(
    facts({
      permission: 'edit',
      patterns: ['a.py'],
      metadata: { filepath: '/r/w/a.py', diff: '-a\n+b', filediff: { additions: 1 } }
    }),
    [
      ['file', '/r/w/a.py'],
      ['diff', '-a\n+b']
    ]
  );
  assert.deepEqual(
    facts({
      permission: 'external_directory',
      patterns: ['/etc/*'],
      metadata: { filepath: '/etc/hosts', parentDir: '/etc' }
    }),
    [
      ['file', '/etc/hosts'],
      ['patterns', '/etc/*']
    ]
  );
  assert.deepEqual(
    facts({
      permission: 'external_directory',
      patterns: ['/etc/*'],
      metadata: { command: 'cat /etc/hosts', directories: ['/etc'], patterns: ['/etc/*'] }
    }),
    [
      ['command', 'cat /etc/hosts'],
      ['patterns', '/etc/*']
    ]
  );
  assert.deepEqual(facts({ permission: 'grep', patterns: ['x'], metadata: { pattern: 'x', path: 'src' } }), [
    ['file', 'src'],
    ['patterns', 'x']
  ]);
  assert.deepEqual(facts({ permission: 'mine', patterns: ['*'], metadata: { depth: 2, none: null } }), [
    ['patterns', '*'],
    ['more', 'depth: 2']
  ]);
});

test('whether it lies outside the worktree', () => {
  const outside = (facts: object) => isOutside(ask('p', facts), '/r/w');
  assert.equal(outside({ permission: 'external_directory', patterns: ['/r/w/*'] }), true);
  assert.equal(outside({ permission: 'edit', metadata: { filepath: '/r/w/a' } }), false);
  assert.equal(outside({ permission: 'edit', metadata: { filepath: '/r/ww/a' } }), true);
  assert.equal(outside({ permission: 'grep', metadata: { path: '../a' } }), true);
  assert.equal(outside({ permission: 'read', patterns: ['../../etc/hosts'], metadata: {} }), true);
  assert.equal(outside({ permission: 'read', patterns: ['..a'], metadata: {} }), false);
  assert.equal(outside({ permission: 'bash', metadata: { command: 'ls' } }), false);
});

test('"always" is told in words', () => {
  const told = (facts: object) => alwaysSentence(ask('p', facts), trans);
  assert.match(told({ always: ['git *'] }), /each command that matches$/);
  assert.match(told({ permission: 'edit', always: ['*'] }), /everything that needs the permission “edit”/);
  assert.match(told({ permission: 'external_directory', always: ['/etc/*'] }), /all work on what is at$/);
});

test('an ask is one sentence for those who listen', () => {
  assert.equal(askSentence(ask('p'), trans), 'a needs a permission: run ls');
  const question = ask('q', { kind: 'question', permission: null, questions: [{ question: 'Which?' }] });
  assert.equal(askSentence(question, trans), 'a asks: Which?');
  assert.ok(askSentence(ask('p', { patterns: ['x'.repeat(5000)] }), trans).length < 300);
});

test('the tool that waits is told when it is the only one', () => {
  const part = (tool: string, status: string, input: object): any => ({
    type: 'tool',
    tool,
    state: { status, input }
  });
  const message = (...parts: any[]): any => ({ info: { id: 'm' }, parts });
  const bash = part('bash', 'running', { command: 'cat /etc/hosts' });
  assert.deepEqual(runningTool([message(part('read', 'completed', {}), bash)]), {
    tool: 'bash',
    input: 'cat /etc/hosts'
  });
  assert.equal(runningTool([message(bash, bash)]), null);
  assert.equal(runningTool([]), null);
});

test('answers in own words stand beside the options', () => {
  const questions = [{ question: 'a', options: [{ label: 'x' }] }, { question: 'b' }];
  assert.equal(isComplete(noAnswers(questions)), false);
  const answers = [
    { chosen: ['x'], own: '' },
    { chosen: [], own: ' mine ' }
  ];
  assert.equal(isComplete(answers), true);
  assert.deepEqual(labelsOf(answers), [['x'], ['mine']]);
  assert.equal(isComplete([answers[0], { chosen: [], own: ' ' }]), false);
});

test('what was written just before a page went away is there in the next one, once', () => {
  const kept = new Map<string, string>();
  const storage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name)
  };
  const words = new LastWords(() => storage, 'drafts');
  const drafts = new Drafts();
  drafts.set('a', { text: 'to the very end' });
  drafts.set('b', { text: '' });
  words.leave(drafts);
  const old: SavedDrafts = { drafts: [['a', { text: 'to the' }], ['b', { text: 'was sent' }], ['c', { text: 'old' }]] };
  const next = new Drafts();
  next.restore(words.join(old));
  assert.deepEqual(['a', 'b', 'c'].map(name => next.get(name).text), ['to the very end', '', 'old']);
  assert.deepEqual(words.join(old), old);
  kept.set('drafts', 'no json');
  assert.deepEqual(words.join(old), old);
  const forbidden = new LastWords(() => {
    throw new Error('no storage');
  }, 'drafts');
  forbidden.leave(drafts);
  assert.deepEqual(forbidden.join(old), old);
});
