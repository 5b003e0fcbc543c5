/**
 * All of a session's tab: header, todo list, conversation, and below it what is asked and what is answered.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { OcmanModel } from '../model';
import { Button, ErrorText } from '../panel/button';
import { worktreeOf } from '../panel/rows';
import { KnownSession, baseName, keyOf, repositoryOf } from '../state';
import { useAnnouncement } from './announce';
import { Conversation } from './conversation';
import { SessionHeader } from './header';
import { FailureCard } from './message';
import { Painter } from './painter';
import { placeOf } from './place';
import { Empty, Missing, Offline, Removed, Retrying, Skeleton, Unread } from './states';
import { Surroundings } from './surroundings';
import { TodoList } from './todo';
import { Transcript } from './transcript';

/** What the application does for a session's tab. */
export interface SessionCallbacks {
  openDiff(host: string, worktreePath: string): void;
  /** `path` is absolute on the session's host; lines count from one. */
  openFile(path: string, host: string, line?: number): void;
  openSession(sessionKey: string): void;
  /** Show what else can be done to the session, at `anchor`. */
  menu(anchor: HTMLElement, sessionKey: string): void;
  /** Make the worktree of a session anew whose folder is gone. */
  recreate?(session: KnownSession): void;
}

export interface SessionViewProps {
  conversation: Conversation;
  model: OcmanModel;
  painter: Painter;
  trans: TranslationBundle;
  callbacks: SessionCallbacks;
  /** A human can see it: what nobody sees is not drawn. */
  isVisible: boolean;
  /** Whether turns say what they cost. */
  showCost: boolean;
  onClose: () => void;
  /** What is docked below the conversation: asks and the composer. */
  children: React.ReactNode;
}

export function SessionView(props: SessionViewProps): JSX.Element {
  const { conversation, model, trans, callbacks, isVisible, onClose, children } = props;
  useShown(conversation, isVisible);
  const { session, host, todos } = conversation;
  const surroundings = useSurroundings(props);
  const [todosOpen, setTodosOpen] = React.useState(false);
  const todosId = React.useId();
  const announcement = useAnnouncement(conversation, model.state, trans);
  const title = session?.title || trans.__('Session');
  const place = placeOf(model.state, session);
  const worktree = session ? worktreeOf(model.state, session) : undefined;
  useDetails(model, host, worktree?.path);
  const parent = session?.parent_id ?? null;
  const isMissing = session?.status === 'directory_missing';
  const isReadOnly = isMissing || conversation.isRemoved;
  const error = conversation.error ? null : conversation.actionError;

  return (
    <div className="ocman-Session-content">
      <SessionHeader
        name={place.name || title}
        title={title}
        status={session?.status ?? 'unknown'}
        worktree={worktree}
        todos={todos}
        todoList={{ id: todosId, isOpen: todosOpen, toggle: () => setTodosOpen(!todosOpen) }}
        isLive={model.connection.phase === 'live'}
        isBusy={conversation.isBusy}
        onStop={() => void conversation.abort()}
        onParent={parent ? () => callbacks.openSession(keyOf(host, parent)) : null}
        onDiff={worktree && !isMissing ? () => callbacks.openDiff(host, worktree.path) : null}
        onMenu={anchor => callbacks.menu(anchor, conversation.sessionKey)}
        trans={trans}
      />
      <Offline model={model} trans={trans} />
      {session?.retry && conversation.isBusy && <Retrying retry={session.retry} trans={trans} />}
      {todosOpen && todos.length > 0 && <TodoList id={todosId} todos={todos} trans={trans} />}
      {error && (
        <div className="ocman-Banner">
          <ErrorText error={error} />
          <Button onClick={() => conversation.dismissError()}>{trans.__('Dismiss')}</Button>
        </div>
      )}
      <Transcript conversation={conversation} surroundings={surroundings} title={title}>
        <Tail
          conversation={conversation}
          title={title}
          branch={worktree?.branch ?? null}
          onResend={surroundings.onResend}
          trans={trans}
        />
      </Transcript>
      <div className="ocman-Hidden" role="status">
        {announcement}
      </div>
      {conversation.isRemoved ? (
        <Removed onClose={onClose} trans={trans} />
      ) : isMissing ? (
        <Missing
          directory={session.directory}
          onRecreate={callbacks.recreate ? () => callbacks.recreate!(session) : null}
          onClose={onClose}
          trans={trans}
        />
      ) : null}
      {!isReadOnly && children}
    </div>
  );
}

/** What follows the newest entry, or stands in place of all. */
function Tail(props: {
  conversation: Conversation;
  title: string;
  branch: string | null;
  onResend: (() => void) | null;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { conversation, title, branch, onResend, trans } = props;
  const { session, messages, error, isLoaded, isLoading, isBusy } = conversation;
  if (error && !conversation.isRemoved) {
    return <Unread conversation={conversation} error={error} trans={trans} />;
  }
  if (!isLoaded) {
    return isLoading || conversation.model.connection.phase !== 'live' ? <Skeleton trans={trans} /> : null;
  }
  if (!messages.length) {
    return session && !isBusy ? (
      <Empty title={title} directory={session.directory || baseName(title)} branch={branch} trans={trans} />
    ) : null;
  }
  // A turn that failed before there was a message to say so.
  const isSaid = messages[messages.length - 1].info.error;
  return session?.status === 'error' && !isSaid ? (
    <FailureCard text={session.error ?? ''} onResend={onResend} trans={trans} />
  ) : null;
}

/** The same object as long as nothing in it changes: all entries depend on it. */
function useSurroundings(props: SessionViewProps): Surroundings {
  const { conversation, model, painter, trans, callbacks, showCost } = props;
  const { host, session, isRemoved } = conversation;
  const directory = session?.directory ?? '';
  const canSend = !isRemoved && session?.status !== 'directory_missing' && model.connection.phase === 'live';
  return React.useMemo(
    () => ({
      trans,
      painter,
      host,
      directory,
      showCost,
      onFile: (path, line) => callbacks.openFile(path, host, line),
      onDiff: () => {
        const found = conversation.session && worktreeOf(model.state, conversation.session);
        callbacks.openDiff(host, found?.path ?? directory);
      },
      onSession: key => callbacks.openSession(key),
      onResend: canSend ? () => void conversation.resend() : null
    }),
    [conversation, model, painter, trans, callbacks, host, directory, showCost, canSend]
  );
}

/** How much changed in a worktree is read only where somebody shows it. */
function useDetails(model: OcmanModel, host: string, path: string | undefined): void {
  const repository = path === undefined ? undefined : repositoryOf(model.state, host, path);
  const isUnknown = path !== undefined && repository?.worktrees.get(path)?.changes === null;
  const isLive = model.connection.phase === 'live';
  React.useEffect(() => {
    if (repository && isUnknown && isLive) {
      model.loadDetails(repository.key);
    }
  }, [model, repository, isUnknown, isLive]);
}

/** Draw again when the conversation or the model changes, but only while somebody sees it. */
function useShown(conversation: Conversation, isVisible: boolean): void {
  const [, draw] = React.useReducer((n: number) => n + 1, 0);
  React.useEffect(() => {
    if (!isVisible) {
      return undefined;
    }
    const slot = () => draw();
    conversation.changed.connect(slot);
    conversation.model.changed.connect(slot);
    slot();
    return () => {
      conversation.changed.disconnect(slot);
      conversation.model.changed.disconnect(slot);
    };
  }, [conversation, isVisible]);
}

export function focusComposer(root: Element): boolean {
  const field = root.querySelector<HTMLElement>('.ocman-Composer textarea');
  field?.focus();
  return !!field;
}
