/**
 * What stands between the user and live state, each with what to do about it.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { ConnectionState } from '../connection';
import { OcmanModel } from '../model';
import { Button, ErrorText } from './button';
import { useNow } from './hooks';

interface Props {
  model: OcmanModel;
  trans: TranslationBundle;
}

export function Notices({ model, trans }: Props): JSX.Element {
  const { connection, capabilities, otherVersion, state } = model;
  const broken = [...state.repositories.values()].filter(({ key }) => model.errors.has(key));
  const missing = (connection.phase === 'live' && capabilities?.missing.filter(tool => tool.required)) || [];
  return (
    <>
      {connection.phase === 'reconnecting' && <Trouble connection={connection} model={model} trans={trans} />}
      {otherVersion !== null && (
        <Card title={trans.__('The page is older or newer than the server')}>
          <p>
            {trans.__('This page is version %1, the server is version %2.', model.pageVersion, otherVersion)}
          </p>
          <Button onClick={() => window.location.reload()}>{trans.__('Reload the page')}</Button>
        </Card>
      )}
      {missing.map(tool => (
        <Card key={tool.name} title={trans.__('%1 is missing', tool.name)}>
          <p>{tool.reason}</p>
          <p className="ocman-Card-hint">{tool.hint}</p>
          <Button onClick={() => void model.refresh([])}>{trans.__('Check again')}</Button>
        </Card>
      ))}
      {broken.map(({ key, name }) => (
        <Card key={key} title={trans.__('Could not read the worktrees of %1', name)}>
          <ErrorText error={model.errors.get(key)!} />
          <Button onClick={() => void model.refresh([key])}>{trans.__('Retry')}</Button>
        </Card>
      ))}
    </>
  );
}

function Trouble(
  props: Props & { connection: Extract<ConnectionState, { phase: 'reconnecting' }> }
): JSX.Element {
  const { connection, model, trans } = props;
  switch (connection.trouble) {
    case 'extension_missing':
      return (
        <Card title={trans.__('The ocman server extension does not run')}>
          <p>
            {trans.__(
              'This page has the panel, but its Jupyter server does not answer for it. In the environment of the server:'
            )}
          </p>
          <p className="ocman-Card-hint">
            <code>pip install ocman-jupyter</code>
            <br />
            <code>jupyter server extension enable ocman_jupyter</code>
          </p>
          <p>{trans.__('Then restart the Jupyter server.')}</p>
          <Button onClick={() => model.retry()}>{trans.__('Check again')}</Button>
        </Card>
      );
    case 'unauthorized':
      return (
        <Card title={trans.__('You are logged out')}>
          <p>{trans.__('The Jupyter server wants you to log in again.')}</p>
          <Button onClick={() => window.location.reload()}>{trans.__('Reload the page')}</Button>
        </Card>
      );
    default:
      return (
        <div className="ocman-Banner">
          <span>
            <Countdown retryAt={connection.retryAt} trans={trans} />
          </span>
          <Button onClick={() => model.retry()} blocked={connection.retryAt === null}>
            {trans.__('Now')}
          </Button>
        </div>
      );
  }
}

function Countdown({ retryAt, trans }: { retryAt: number | null; trans: TranslationBundle }): JSX.Element {
  const now = useNow(500);
  const seconds = retryAt === null ? 0 : Math.ceil((retryAt - now) / 1000);
  return seconds > 0 ? (
    <>{trans.__('Server gone. Reconnecting in %1 s.', seconds)}</>
  ) : (
    <>{trans.__('Server gone. Reconnecting…')}</>
  );
}

function Card({ title, children }: { title: string; children: React.ReactNode }): JSX.Element {
  return (
    <section className="ocman-Card" aria-label={title}>
      <h2 dir="auto">{title}</h2>
      {children}
    </section>
  );
}
