/**
 * The short questions that a command asks before it does something.
 */
import * as React from 'react';
import { Dialog, InputDialog, showDialog } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { ApiError } from './errors';
import { Foreign } from './panel/button';
import { worktreeTags, worktreeTitle } from './panel/words';
import { LOCAL, Worktree } from './records';
import { KnownSession, Repository, State, keyOf } from './state';

/** A new title; `null` when the user changed nothing. */
export async function askTitle(session: KnownSession, trans: TranslationBundle): Promise<string | null> {
  const { value } = await InputDialog.getText({
    title: trans.__('Rename session'),
    label: trans.__('Title'),
    text: session.title,
    okLabel: trans.__('Rename')
  });
  const title = value?.trim();
  return title && title !== session.title ? title : null;
}

export function confirmDelete(session: KnownSession, trans: TranslationBundle): Promise<boolean> {
  return confirm({
    title: trans.__('Delete session'),
    body: (
      <>
        <p>
          <Foreign text={session.title} />
        </p>
        {isAtWork(session) && <p>{trans.__('It is at work; it will be stopped.')}</p>}
        <p>
          {trans.__('Its messages will be gone. This cannot be undone.')}{' '}
          {trans.__('The files of its worktree stay as they are.')}
        </p>
      </>
    ),
    verb: trans.__('Delete'),
    trans
  });
}

/** Before OpenCode is stopped although sessions are at work: which ones. */
export function confirmForce(
  error: ApiError,
  state: State,
  repository: Repository,
  verb: string,
  trans: TranslationBundle
): Promise<boolean> {
  const ids = Array.isArray(error.details.sessions) ? error.details.sessions.map(String) : [];
  return confirm({
    title: trans.__('Sessions of %1 are at work', repository.name),
    body: (
      <>
        <ul className="ocman-Names">
          {ids.map(id => (
            <li key={id}>
              <Foreign text={state.sessions.get(keyOf(repository.host, id))?.title ?? id} />
            </li>
          ))}
        </ul>
        <p>{trans.__('They will be stopped in the middle of what they do. Their messages are kept.')}</p>
      </>
    ),
    verb,
    trans
  });
}

/** What is odd about a worktree, and how to put it right; whether it is to be made again. */
export async function explainWorktree(
  worktree: Worktree,
  repository: Repository,
  trans: TranslationBundle
): Promise<boolean> {
  const tags = worktreeTags(worktree, trans).filter(({ mood }) => mood === 'error' || mood === 'warn');
  const canRemake = isRemakeable(worktree);
  const result = await showDialog({
    title: trans.__('Worktree %1', worktreeTitle(worktree)),
    body: (
      <div className="ocman-Advice">
        <p>
          <bdi>{worktree.path}</bdi>
        </p>
        {tags.map(({ text, title }) => (
          <p key={text}>
            <strong>{text}</strong>: <span dir="auto">{title}</span>
          </p>
        ))}
        {adviceFor(worktree, repository, trans).map(({ text, command }) => (
          <React.Fragment key={text}>
            <p>{text}</p>
            {command && (
              <p>
                <code dir="ltr">{command}</code>
              </p>
            )}
          </React.Fragment>
        ))}
      </div>
    ),
    buttons: canRemake
      ? [
          Dialog.cancelButton({ label: trans.__('Close') }),
          Dialog.okButton({ label: trans.__('Make Again') })
        ]
      : [Dialog.okButton({ label: trans.__('Close'), accept: false })],
    defaultButton: 0
  });
  return result.button.accept;
}

/** Whether there is something to explain. */
export function isOdd(worktree: Worktree): boolean {
  return worktree.state !== 'ok' || worktree.locked || worktree.prunable || worktree.operation !== null;
}

/** Whether asking for its branch makes its folder again. */
export function isRemakeable(worktree: Worktree): boolean {
  return worktree.state === 'missing' && worktree.branch !== null && !worktree.locked;
}

interface Advice {
  readonly text: string;
  /** To be typed in a terminal of the worktree's host. */
  readonly command?: string;
}

export function adviceFor(worktree: Worktree, repository: Repository, trans: TranslationBundle): Advice[] {
  const { path } = worktree;
  const git = `git -C ${quoted(repository.root)}`;
  const advice: Advice[] = [];
  if (worktree.locked) {
    advice.push({
      text: trans.__('When nobody needs the lock any more, in a terminal:'),
      command: `${git} worktree unlock ${quoted(path)}`
    });
  }
  switch (worktree.state) {
    case 'missing':
      if (isRemakeable(worktree)) {
        advice.push({
          text: trans.__('Make it again from its branch, or remove it so that git forgets it. If it was moved, tell git:'),
          command: `${git} worktree repair ${trans.__('NEW-PATH')}`
        });
      } else if (!worktree.locked) {
        advice.push({ text: trans.__('Remove it so that git forgets it.') });
      }
      break;
    case 'moved':
      advice.push({
        text: trans.__('Connect the folder and the repository again, in a terminal:'),
        command: `${git} worktree repair ${quoted(path)}`
      });
      break;
    case 'not_a_worktree':
      advice.push({
        text: trans.__('git knows nothing of this folder. Look into it, and move it away or delete it yourself.')
      });
      break;
    default:
      if (worktree.prunable) {
        advice.push({ text: trans.__('To keep it, lock it:'), command: `${git} worktree lock ${quoted(path)}` });
      }
  }
  if (worktree.operation) {
    const at = `git -C ${quoted(path)} ${worktree.operation}`;
    advice.push({
      text: trans.__('Finish what is under way, or break it off, in a terminal:'),
      command: `${at} --continue   /   ${at} --abort`
    });
  }
  if (repository.host !== LOCAL) {
    advice.push({ text: trans.__('It is on the host %1.', repository.host) });
  }
  return advice;
}

/** One word for a shell. */
function quoted(path: string): string {
  return /^[\w./@%+=:,-]+$/.test(path) ? path : `'${path.replace(/'/g, `'\\''`)}'`;
}

function isAtWork({ status }: KnownSession): boolean {
  return status === 'busy' || status === 'needs_you';
}

async function confirm(options: {
  title: string;
  body: JSX.Element;
  verb: string;
  trans: TranslationBundle;
}): Promise<boolean> {
  const { title, body, verb, trans } = options;
  const { button } = await showDialog({
    title,
    body: <div className="ocman-Advice">{body}</div>,
    buttons: [
      Dialog.cancelButton({ label: trans.__('Cancel') }),
      Dialog.warnButton({ label: verb })
    ],
    defaultButton: 0
  });
  return button.accept;
}
