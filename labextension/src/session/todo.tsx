/**
 * The agent's list of what it has to do.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { Todo } from '../records';

const MARKS: Record<Todo['status'], string> = {
  pending: '[ ]',
  in_progress: '[>]',
  completed: '[x]',
  cancelled: '[-]'
};

interface Props {
  id: string;
  todos: readonly Todo[];
  trans: TranslationBundle;
}

export const TodoList = React.memo(function TodoList({ id, todos, trans }: Props): JSX.Element {
  return (
    <ul id={id} className="ocman-Todos" aria-label={trans.__('Todo list')} tabIndex={0}>
      {todos.map((todo, i) => (
        <li key={i} className={`ocman-mod-${todo.status}`}>
          <span className="ocman-Todos-mark" aria-hidden="true">
            {MARKS[todo.status] ?? MARKS.pending}
          </span>
          <bdi>{todo.content}</bdi>
          <span className="ocman-Hidden">{todoWord(todo.status, trans)}</span>
        </li>
      ))}
    </ul>
  );
});

/** How many are done, of those that are still wanted. */
export function todoCounts(todos: readonly Todo[]): { done: number; all: number } {
  const wanted = todos.filter(({ status }) => status !== 'cancelled');
  return { done: wanted.filter(({ status }) => status === 'completed').length, all: wanted.length };
}

function todoWord(status: Todo['status'], trans: TranslationBundle): string {
  switch (status) {
    case 'completed':
      return trans.__('done');
    case 'in_progress':
      return trans.__('in work');
    case 'cancelled':
      return trans.__('cancelled');
    default:
      return trans.__('to do');
  }
}
