/**
 * An ask for a permission: what would be done, and the answers that can be given.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { AskFact, alwaysPatterns, alwaysSentence, askFacts, askText } from '../asks';
import { Button } from '../panel/button';
import {
  AllowButton,
  DOCK,
  FormProps,
  ReplyError,
  SendingText,
  useHandedFocus,
  useReply
} from './answering';

/** Lines of a change beyond these are one piece of text. */
const MOST_LINES = 1000;

interface PermissionProps extends FormProps {
  /** The tool call that waits, as far as that is known. */
  running: { tool: string; input: string } | null;
  reason: string | null;
  onReason: (reason: string | null) => void;
}

export function PermissionForm(props: PermissionProps): JSX.Element {
  const { trans, known, name, isLive, settled, running, reason, onReason } = props;
  const { ask, phase } = known;
  const form = useHandedFocus<HTMLDivElement>(DOCK);
  const { reply, retry } = useReply(props);
  const always = alwaysPatterns(ask);
  const facts = React.useMemo(() => askFacts(ask), [ask]);
  const { object } = askText(ask, trans);
  const isIdle = phase === 'open' && isLive;
  const canAllow = isIdle && settled;
  const once = () => reply({ reply: 'once' });
  const grant = () => reply({ reply: 'always' });
  const reject = () => reply({ reply: 'reject' });
  const isRepeated = running && facts.some(({ text }) => text === running.input);

  return (
    <div ref={form} className="ocman-Dock-ask" data-ask={ask.id}>
      <div
        className="ocman-Dock-facts"
        role="group"
        tabIndex={0}
        aria-label={trans.__('What would be done')}
      >
        <dl className="ocman-Facts">
          {running && !isRepeated && (
            <>
              <dt>{trans.__('while running')}</dt>
              <dd>
                {running.tool} <code dir="auto">{running.input}</code>
              </dd>
            </>
          )}
          {facts.map(fact => (
            <React.Fragment key={fact.kind}>
              <dt>{factName(fact, trans)}</dt>
              <dd>
                {fact.kind === 'diff' ? <DiffText text={fact.text} /> : <code dir="auto">{fact.text}</code>}
              </dd>
            </React.Fragment>
          ))}
        </dl>
      </div>
      {always.length > 0 && (
        <div className="ocman-Dock-always">
          {alwaysSentence(ask, trans)}{' '}
          {always.map((pattern, i) => (
            <React.Fragment key={i}>
              {i > 0 && ', '}
              <code dir="auto">{pattern}</code>
            </React.Fragment>
          ))}{' '}
          {trans.__('in this worktree, until OpenCode restarts.')}
        </div>
      )}
      <ReplyError {...props} retry={retry} />
      {reason === null ? (
        <div className="ocman-Ask-buttons">
          <AllowButton
            mood="accept"
            ready={canAllow}
            onAllow={once}
            answer="once"
            title={trans.__('Allow this once (Alt+1)')}
            label={trans.__('Allow once, %1, %2', name, object)}
          >
            {trans.__('Once')}
          </AllowButton>
          {always.length > 0 && (
            <AllowButton
              ready={canAllow}
              onAllow={grant}
              answer="always"
              title={trans.__('Allow always (Alt+2): %1', always.join('\n'))}
              label={trans.__('Allow always %1, %2', always.join(', '), name)}
            >
              {trans.__('Always')} <bdi className="ocman-Pattern">{always.join(', ')}</bdi>
            </AllowButton>
          )}
          <Button
            blocked={!isIdle}
            onClick={reject}
            data-reply="reject"
            title={trans.__('Reject, and end the turn (Alt+3)')}
            aria-label={trans.__('Reject, %1, %2', name, object)}
          >
            {trans.__('Reject')}
          </Button>
          <Button
            blocked={!isIdle}
            onClick={() => onReason('')}
            title={trans.__('The agent reads the reason, and goes on')}
            aria-label={trans.__('Reject with reason, %1, %2', name, object)}
          >
            {trans.__('Reject with reason…')}
          </Button>
          <SendingText {...props} />
        </div>
      ) : (
        <ReasonForm
          {...props}
          blocked={!isIdle}
          reason={reason}
          onReject={message => reply({ reply: 'reject', message })}
        />
      )}
    </div>
  );
}

function ReasonForm(
  props: PermissionProps & { reason: string; blocked: boolean; onReject: (message: string) => void }
): JSX.Element {
  const { trans, name, reason, onReason, blocked, onReject } = props;
  const message = reason.trim();
  const send = () => {
    if (message && !blocked) {
      onReject(message);
    }
  };
  return (
    <div className="ocman-Dock-reason">
      <label>
        {trans.__('Why not, or what instead? The agent reads it, and goes on.')}
        <input
          autoFocus
          type="text"
          className="ocman-Input"
          value={reason}
          onChange={event => onReason(event.target.value)}
          onKeyDown={event => {
            if (event.nativeEvent.isComposing) {
              return;
            }
            if (event.key === 'Enter' && !event.repeat) {
              send();
            } else if (event.key === 'Escape') {
              event.stopPropagation();
              onReason(null);
            }
          }}
        />
      </label>
      <div className="ocman-Ask-buttons">
        <Button
          blocked={blocked || !message}
          onClick={send}
          aria-label={trans.__('Reject with reason, %1', name)}
        >
          {trans.__('Reject with reason')}
        </Button>
        <Button onClick={() => onReason(null)}>{trans.__('Cancel')}</Button>
        <SendingText {...props} />
      </div>
    </div>
  );
}

/** A change as it would be made; each line says by its first character what it is. */
function DiffText({ text }: { text: string }): JSX.Element {
  const lines = text.split('\n');
  return (
    <pre className="ocman-Dock-diff">
      {lines.slice(0, MOST_LINES).map((line, i) => (
        <span key={i} className={moodOf(line)}>
          {line + '\n'}
        </span>
      ))}
      {lines.slice(MOST_LINES).join('\n')}
    </pre>
  );
}

function moodOf(line: string): string | undefined {
  // The names of the files stand before the changes.
  if (/^(\+\+\+|---) /.test(line)) {
    return undefined;
  }
  return line[0] === '+' ? 'ocman-mod-added' : line[0] === '-' ? 'ocman-mod-removed' : undefined;
}

function factName({ kind }: AskFact, trans: TranslationBundle): string {
  const names: Record<AskFact['kind'], string> = {
    command: trans.__('command'),
    file: trans.__('file'),
    url: trans.__('address'),
    diff: trans.__('change'),
    patterns: trans.__('matches'),
    more: trans.__('more')
  };
  return names[kind];
}
