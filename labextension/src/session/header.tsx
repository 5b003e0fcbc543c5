/**
 * Which session it is, where it works, what it does, and what can be done to it.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ellipsesIcon } from '@jupyterlab/ui-components';
import { Button, Foreign, IconButton } from '../panel/button';
import { StatusGlyph } from '../panel/glyph';
import { changedFiles, statusWord } from '../panel/words';
import { SessionStatus, Worktree } from '../records';
import { todoCounts } from './todo';

interface Props {
  /** Of the worktree, or of what stands for it. */
  name: string;
  title: string;
  status: SessionStatus;
  worktree: Worktree | undefined;
  todos: Parameters<typeof todoCounts>[0];
  /** The list that the Todo button opens. */
  todoList: { id: string; isOpen: boolean; toggle: () => void };
  isLive: boolean;
  isBusy: boolean;
  onStop: () => void;
  /** Go to the session that a subagent works for. */
  onParent: (() => void) | null;
  onDiff: (() => void) | null;
  onMenu: (anchor: HTMLElement) => void;
  trans: TranslationBundle;
}

export function SessionHeader(props: Props): JSX.Element {
  const { name, title, status, worktree, todos, todoList, isLive, isBusy, trans } = props;
  const changes = worktree ? changedFiles(worktree) : null;
  const { done, all } = todoCounts(todos);
  return (
    <div className="ocman-SessionHeader" role="group" aria-label={trans.__('Session')}>
      <StatusGlyph status={status} />
      <span className={`ocman-Status ocman-mod-${status}`}>{statusWord(status, trans)}</span>
      <h1>
        <Foreign className="ocman-SessionHeader-name" text={name} />
        {title !== name && (
          <>
            <span aria-hidden="true"> / </span>
            <Foreign className="ocman-SessionHeader-title" text={title} />
          </>
        )}
      </h1>
      <span className="ocman-SessionHeader-buttons">
        {props.onParent && <Button onClick={props.onParent}>{trans.__('Parent session')}</Button>}
        {props.onDiff && (
          <Button
            onClick={props.onDiff}
            aria-label={
              changes === null
                ? trans.__('Diff')
                : trans._n('Diff, %1 changed file', 'Diff, %1 changed files', changes)
            }
          >
            {trans.__('Diff')} {changes !== null && <span aria-hidden="true">~{changes}</span>}
          </Button>
        )}
        {todos.length > 0 && (
          <Button
            onClick={todoList.toggle}
            aria-expanded={todoList.isOpen}
            aria-controls={todoList.id}
            aria-label={trans.__('Todo, %1 of %2 done', done, all)}
          >
            {trans.__('Todo')} {done}/{all}
          </Button>
        )}
        {isBusy && (
          <Button
            mood="warn"
            blocked={!isLive}
            onClick={props.onStop}
            aria-label={trans.__('Stop %1', title)}
          >
            {trans.__('Stop')}
          </Button>
        )}
        <IconButton
          icon={ellipsesIcon}
          label={trans.__('More for this session')}
          aria-haspopup="menu"
          onClick={event => props.onMenu(event.currentTarget)}
        />
      </span>
    </div>
  );
}
