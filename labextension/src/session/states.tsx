/**
 * What stands in a session's tab when there is no conversation to show, or something is in its way.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ConnectionState } from '../connection';
import { ApiError } from '../errors';
import { OcmanModel } from '../model';
import { Button, ErrorText, Foreign } from '../panel/button';
import { useNow, useSettled } from '../panel/hooks';
import { Retry } from '../records';
import { Conversation } from './conversation';
import { oneLine } from './words';

/** Nothing is drawn for what comes at once, in milliseconds. */
const SKELETON_AFTER = 300;

export function Skeleton({ trans }: { trans: TranslationBundle }): JSX.Element | null {
  const settled = useSettled('', SKELETON_AFTER);
  return settled ? (
    <div className="ocman-Skeleton" role="status" aria-label={trans.__('Loading the conversation')}>
      {[60, 90, 75, 40].map(width => (
        <div key={width} style={{ width: `${width}%` }} />
      ))}
    </div>
  ) : null;
}

/** A session in which nothing was said yet. */
export function Empty(props: {
  title: string;
  directory: string;
  branch: string | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { title, directory, branch, trans } = props;
  return (
    <div className="ocman-EmptySession">
      <h2>
        <Foreign text={title} />
      </h2>
      <dl className="ocman-Facts">
        <dt>{trans.__('Working in')}</dt>
        <dd>
          <bdi>{directory}</bdi>
        </dd>
        {branch && (
          <>
            <dt>{trans.__('On')}</dt>
            <dd>
              <bdi>{branch}</bdi>
            </dd>
          </>
        )}
      </dl>
      <p>{trans.__('Say below what is to be done.')}</p>
    </div>
  );
}

export function Missing(props: {
  directory: string;
  onRecreate: (() => void) | null;
  onClose: () => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { directory, onRecreate, onClose, trans } = props;
  return (
    <section className="ocman-Card ocman-mod-docked" aria-label={trans.__('The folder is gone')}>
      <h2>{trans.__('The folder is gone')}</h2>
      <p>
        {trans.__('The agent cannot go on without it. What was said can be read:')} <bdi>{directory}</bdi>
      </p>
      <div className="ocman-Card-buttons">
        {onRecreate && <Button onClick={onRecreate}>{trans.__('Recreate')}</Button>}
        <Button onClick={onClose}>{trans.__('Close')}</Button>
      </div>
    </section>
  );
}

export function Removed({ onClose, trans }: { onClose: () => void; trans: TranslationBundle }): JSX.Element {
  return (
    <section className="ocman-Card ocman-mod-docked" aria-label={trans.__('The session was deleted')}>
      <h2>{trans.__('The session was deleted')}</h2>
      <Button onClick={onClose}>{trans.__('Close')}</Button>
    </section>
  );
}

/** The messages could not be read. */
export function Unread(props: {
  conversation: Conversation;
  error: ApiError;
  trans: TranslationBundle;
}): JSX.Element {
  const { conversation, error, trans } = props;
  if (error.code === 'opencode_unreachable') {
    return (
      <section className="ocman-Card" aria-label={trans.__('No OpenCode runs')}>
        <h2>{trans.__('No OpenCode runs')}</h2>
        <p>{trans.__('The conversation can be read, and go on, when one does.')}</p>
        {conversation.actionError && <ErrorText error={conversation.actionError} />}
        {conversation.session && (
          <Button mood="accept" blocked={conversation.isStarting} onClick={() => void conversation.start()}>
            {conversation.isStarting ? trans.__('Starting…') : trans.__('Start')}
          </Button>
        )}
      </section>
    );
  }
  return (
    <section className="ocman-Card ocman-mod-error" aria-label={trans.__('The conversation was not read')}>
      <h2>{trans.__('The conversation was not read')}</h2>
      <ErrorText error={error} />
      <Button blocked={conversation.isLoading} onClick={() => void conversation.load()}>
        {trans.__('Retry')}
      </Button>
    </section>
  );
}

/** The model failed, and the turn goes on by itself. */
export function Retrying({ retry, trans }: { retry: Retry; trans: TranslationBundle }): JSX.Element {
  const now = useNow(1000);
  const seconds = retry.at ? Math.ceil((Date.parse(retry.at) - now) / 1000) : 0;
  return (
    <div className="ocman-Banner">
      <span dir="auto">
        {trans.__('Model error: %1', oneLine(retry.message, 300))}{' '}
        {seconds > 0
          ? trans.__('Retry %1 in %2 s.', retry.attempt, seconds)
          : trans.__('Retry %1…', retry.attempt)}
      </span>
    </div>
  );
}

/** The stream is lost: what is shown may be old. */
export function Offline({
  model,
  trans
}: {
  model: OcmanModel;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { connection } = model;
  return connection.phase === 'reconnecting' ? (
    <div className="ocman-Banner">
      <OfflineText connection={connection} trans={trans} />
      <Button onClick={() => model.retry()} blocked={connection.retryAt === null}>
        {trans.__('Now')}
      </Button>
    </div>
  ) : null;
}

function OfflineText(props: {
  connection: Extract<ConnectionState, { phase: 'reconnecting' }>;
  trans: TranslationBundle;
}): JSX.Element {
  const { connection, trans } = props;
  const now = useNow(500);
  const { retryAt, trouble } = connection;
  const what =
    trouble === 'unauthorized'
      ? trans.__('You are logged out: log in again and reload the page.')
      : trouble === 'extension_missing'
        ? trans.__('The ocman server extension does not answer.')
        : trans.__('Server gone.');
  const seconds = retryAt === null ? 0 : Math.ceil((retryAt - now) / 1000);
  return (
    <span>
      {what} {seconds > 0 ? trans.__('Reconnecting in %1 s.', seconds) : trans.__('Reconnecting…')}
    </span>
  );
}
