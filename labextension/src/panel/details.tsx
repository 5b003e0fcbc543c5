/**
 * What is known of one session, at the foot of the panel.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { checkIcon, closeIcon, copyIcon } from '@jupyterlab/ui-components';
import { askText } from '../asks';
import { OcmanModel } from '../model';
import { keyOf } from '../state';
import { Button, ErrorText, Foreign, IconButton } from './button';
import { StatusGlyph } from './glyph';
import { worktreeOf } from './rows';
import { age, statusWord, worktreeTitle } from './words';

interface Props {
  model: OcmanModel;
  /** The session's key. */
  sessionKey: string;
  trans: TranslationBundle;
  now: number;
  isLive: boolean;
  onClose: () => void;
}

export function SessionDetails({
  model,
  sessionKey,
  trans,
  now,
  isLive,
  onClose
}: Props): JSX.Element | null {
  const section = React.useRef<HTMLElement>(null);
  const session = model.state.sessions.get(sessionKey);
  if (!session) {
    return null;
  }
  const worktree = worktreeOf(model.state, session);
  const asks = [...model.state.asks.values()].filter(
    ({ ask, phase }) => phase !== 'done' && keyOf(ask.host, ask.session_id) === sessionKey
  );
  const error = model.errors.get(sessionKey);
  const canStop = session.status === 'busy' || session.status === 'needs_you';
  const abort = () => {
    // The button goes away when the session has stopped; the focus stays here.
    section.current?.focus();
    void model.abort(sessionKey);
  };
  return (
    <section
      ref={section}
      tabIndex={-1}
      className="ocman-Details"
      aria-label={trans.__('Session %1', session.title)}
      onKeyDown={event => event.key === 'Escape' && onClose()}
    >
      <div className="ocman-Details-head">
        <StatusGlyph status={session.status} />
        <Foreign className="ocman-Details-title" text={session.title} />
        {canStop && (
          <Button
            mood="warn"
            blocked={!isLive}
            onClick={abort}
            aria-label={trans.__('Abort %1', session.title)}
          >
            {trans.__('Abort')}
          </Button>
        )}
        <IconButton icon={closeIcon} label={trans.__('Close details')} onClick={onClose} />
      </div>
      <dl className="ocman-Facts">
        <dt>{trans.__('Status')}</dt>
        <dd>
          {statusWord(session.status, trans)}, {age(session.updated, now, trans)}
        </dd>
        {worktree && (
          <>
            <dt>{trans.__('Worktree')}</dt>
            <dd>
              <bdi>{worktreeTitle(worktree)}</bdi>
            </dd>
          </>
        )}
        <dt>{trans.__('Folder')}</dt>
        <dd>
          <bdi>{session.directory}</bdi>
        </dd>
        {session.model && (
          <>
            <dt>{trans.__('Model')}</dt>
            <dd>
              <bdi>{session.model}</bdi>
            </dd>
          </>
        )}
        <dt>{trans.__('Id')}</dt>
        <dd className="ocman-Details-id">
          <code>{session.id}</code>
          <CopyButton text={session.id} trans={trans} />
        </dd>
        {asks.map(({ ask }) => {
          const { deed, object } = askText(ask, trans);
          return (
            <React.Fragment key={ask.id}>
              <dt>{trans.__('Asks')}</dt>
              <dd dir="auto">
                {deed} <bdi>{object}</bdi>
              </dd>
            </React.Fragment>
          );
        })}
      </dl>
      {session.status === 'directory_missing' && (
        <div className="ocman-Warning">
          {trans.__('The folder is gone. A new worktree session with the same name makes it again.')}
        </div>
      )}
      {session.status === 'error' && session.error && (
        <div className="ocman-Warning" dir="auto">
          {session.error}
        </div>
      )}
      {error && <ErrorText error={error} />}
    </section>
  );
}

function CopyButton({ text, trans }: { text: string; trans: TranslationBundle }): JSX.Element {
  const [copied, setCopied] = React.useState(false);
  React.useEffect(() => {
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    // Only a secure context has a clipboard; elsewhere the id can still be selected.
    void navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => setCopied(false)
    );
  };
  return navigator.clipboard ? (
    <IconButton
      icon={copied ? checkIcon : copyIcon}
      label={copied ? trans.__('Copied') : trans.__('Copy id')}
      onClick={copy}
    />
  ) : (
    <></>
  );
}
