/**
 * Where a message to the agent is written.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { notebookIcon } from '@jupyterlab/ui-components';
import { ISignal } from '@lumino/signaling';
import { OcmanModel } from '../model';
import { Button, ErrorText, IconButton } from '../panel/button';
import { useSignal } from '../panel/hooks';
import { KnownSession, keyOf } from '../state';
import { Completion, SessionChoices, deedOf } from './completion';
import { Drafts } from './drafts';
import { Pickers } from './pickers';
import { placeOf } from './place';
import { useSelected } from './selected';
import { Problem, Sending, isBlank, isRunning, whyNot } from './sending';
import { Suggestions, optionId } from './suggestions';

interface Props {
  conversation: { readonly session: KnownSession | null; readonly changed: ISignal<any, void> };
  model: OcmanModel;
  sessionKey: string;
  trans: TranslationBundle;
  drafts: Drafts;
  /** Enter sends, and Shift+Enter makes a new line; otherwise Enter makes one. */
  enterSends?: boolean;
  /** The text of the notebook cell that is selected, as it should stand in a message; `null` when none is. */
  insertCell?: () => string | null;
}

/** So many characters are more than the field is ever high. */
const TALLEST = 10_000;

export function Composer(props: Props): JSX.Element {
  const { conversation, model, sessionKey, trans, drafts, enterSends = true, insertCell } = props;
  const { choices, completion, sending } = useMachinery(model, sessionKey, drafts);
  for (const { changed } of [model, drafts, choices, completion, sending]) {
    useSignal(changed);
  }
  // The conversation changes with every word of the agent.
  const opened = useSelected(conversation.changed, () => conversation.session);
  const field = React.useRef<HTMLTextAreaElement>(null);
  const id = React.useId();
  const session = opened ?? model.state.sessions.get(sessionKey) ?? null;
  const draft = drafts.get(sessionKey);

  // A prompt of the history is shown in the place of the draft, which stays as it is.
  const [recalled, setRecalled] = React.useState<number | null>(null);
  const text = (recalled !== null ? draft.history[recalled] : undefined) ?? draft.text;

  const isLive = model.connection.phase === 'live';
  const instance = session?.repo_root
    ? model.state.instances.get(keyOf(session.host, session.repo_root))
    : undefined;
  const serving = instance && (instance.state ?? 'running') === 'running' ? instance.pid : undefined;
  React.useEffect(() => {
    if (isLive) {
      // Another OpenCode may offer others.
      choices.load(choices.value !== null).catch(() => undefined);
    }
  }, [choices, isLive, serving]);

  // Where the caret goes once the new text stands in the field.
  const caret = React.useRef<number | null>(null);
  React.useLayoutEffect(() => {
    if (caret.current !== null) {
      field.current?.setSelectionRange(caret.current, caret.current);
      caret.current = null;
    }
  });

  const write = (written: string, at?: number) => {
    if (recalled !== null) {
      // What is changed is the draft from here on; the earlier one can be called back.
      drafts.remember(sessionKey, draft.text);
      setRecalled(null);
    }
    caret.current = at ?? null;
    drafts.set(sessionKey, { text: written });
    sending.dismiss();
  };
  const accept = (index?: number) => {
    const accepted = completion.accept(index);
    if (accepted) {
      if (accepted.file !== null) {
        drafts.mention(sessionKey, accepted.file);
      }
      write(accepted.text, accepted.caret);
    }
  };
  const recall = (index: number | null, end: boolean) => {
    const shown = index === null ? draft.text : draft.history[index];
    caret.current = end ? shown.length : 0;
    setRecalled(index);
  };
  const reason = whyNot(text, session, model.connection, trans);
  const isBlocked = reason !== null || sending.isSending;
  const send = async (asText = false) => {
    if (isBlocked || isBlank(text)) {
      return;
    }
    completion.close();
    await sending.send(text, asText);
    if (!sending.problem) {
      setRecalled(null);
      completion.update(drafts.get(sessionKey).text, 0);
      drafts.flush();
    }
  };

  const onKeyDown = (event: React.KeyboardEvent<HTMLTextAreaElement>) => {
    const { key, shiftKey, altKey } = event;
    const control = event.ctrlKey || event.metaKey;
    // Safari tells the Enter that ends a composition by its code alone.
    if (event.nativeEvent.isComposing || event.keyCode === 229) {
      return;
    }
    const { selectionStart: from, selectionEnd: to, value } = event.currentTarget;
    const isPlain = !shiftKey && !altKey && !control;
    const last = draft.history.length - 1;
    if (completion.isOpen && isPlain && ['ArrowDown', 'ArrowUp', 'Enter', 'Tab', 'Escape'].includes(key)) {
      if (key === 'Escape') {
        completion.close();
        event.stopPropagation();
      } else if (key === 'Enter' || key === 'Tab') {
        accept();
      } else {
        completion.move(key === 'ArrowDown' ? 1 : -1);
      }
    } else if (key === 'Enter' && enterSends && isPlain) {
      // A key that is held down sends nothing again.
      if (!event.repeat) {
        void send();
      }
    } else if (key === 'ArrowUp' && isPlain && to === 0 && (recalled ?? last + 1) > 0) {
      recall((recalled ?? last + 1) - 1, false);
    } else if (key === 'ArrowDown' && isPlain && from === value.length && recalled !== null) {
      recall(recalled < last ? recalled + 1 : null, true);
    } else {
      return;
    }
    event.preventDefault();
  };

  const { name } = placeOf(model.state, session);
  const deed = deedOf(text);
  const isShell = deed.kind === 'shell';
  return (
    <div className={`ocman-Composer${isShell ? ' ocman-mod-shell' : ''}`}>
      {sending.problem && (
        <ProblemText
          problem={sending.problem}
          blocked={isBlocked}
          onSend={asText => void send(asText)}
          trans={trans}
        />
      )}
      <div className="ocman-Composer-box">
        <Suggestions id={`${id}list`} completion={completion} onAccept={accept} trans={trans} />
        {/* The copy of the text makes the field as high as it has to be, up to where it scrolls. */}
        <div className="ocman-Composer-grow" data-text={text.slice(0, TALLEST)}>
          <textarea
            ref={field}
            rows={1}
            dir="auto"
            className="ocman-Input"
            value={text}
            placeholder={trans.__('Message %1…', name)}
            aria-label={trans.__('Message to %1', name)}
            aria-describedby={`${id}mode ${id}reason`}
            aria-autocomplete="list"
            aria-haspopup="listbox"
            aria-controls={completion.isOpen ? `${id}list` : undefined}
            aria-activedescendant={
              completion.isOpen ? optionId(`${id}list`, completion.active) : undefined
            }
            aria-busy={sending.isSending}
            onChange={event => {
              write(event.target.value);
              completion.update(event.target.value, event.target.selectionEnd);
            }}
            onSelect={({ currentTarget: { value, selectionEnd } }) =>
              recalled === null && completion.update(value, selectionEnd)
            }
            onKeyDown={onKeyDown}
            onBlur={() => {
              completion.close();
              drafts.flush();
            }}
          />
        </div>
      </div>
      <div className="ocman-Composer-mode" id={`${id}mode`}>
        {isShell && (
          <>
            <span className="ocman-Tag ocman-mod-warn">{trans.__('shell')}</span>{' '}
            {trans.__('Runs at once in the worktree, and asks nothing.')}
          </>
        )}
      </div>
      <div className="ocman-Composer-bar">
        {!isShell && (
          <Pickers
            session={session}
            choices={choices}
            agent={draft.agent}
            chosen={draft.model}
            onChange={chosen => drafts.set(sessionKey, chosen)}
            trans={trans}
          />
        )}
        {insertCell && (
          <InsertCell
            insertCell={insertCell}
            onInsert={cell => {
              const { selectionStart: from, selectionEnd: to } = field.current!;
              const before = text.slice(0, from);
              const gap = before && !before.endsWith('\n') ? '\n' : '';
              write(before + gap + cell + text.slice(to), from + gap.length + cell.length);
              field.current!.focus();
            }}
            trans={trans}
          />
        )}
        <span className="ocman-Composer-space" />
        {isRunning(session) && <Stop model={model} sessionKey={sessionKey} name={name} trans={trans} />}
        <Button
          mood="accept"
          blocked={isBlocked || isBlank(text)}
          title={reason ?? undefined}
          data-send
          onClick={() => void send()}
        >
          {sending.isSending
            ? trans.__('Sending…')
            : isShell
              ? trans.__('Run')
              : isRunning(session)
                ? trans.__('Queue')
                : trans.__('Send')}
        </Button>
      </div>
      <div className="ocman-Composer-reason" id={`${id}reason`} role="status">
        {reason}
      </div>
    </div>
  );
}

/** What belongs to one composer, for as long as it shows this session. */
function useMachinery(
  model: OcmanModel,
  sessionKey: string,
  drafts: Drafts
): { choices: SessionChoices; completion: Completion; sending: Sending } {
  const machinery = React.useMemo(() => {
    const { api } = model;
    const choices = new SessionChoices(api, sessionKey);
    return {
      choices,
      completion: new Completion(api, sessionKey, choices),
      sending: new Sending(api, sessionKey, drafts, choices)
    };
  }, [model, sessionKey, drafts]);
  React.useEffect(() => () => machinery.completion.dispose(), [machinery]);
  return machinery;
}

function ProblemText(props: {
  problem: Problem;
  blocked: boolean;
  onSend: (asText: boolean) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { problem, blocked, onSend, trans } = props;
  const error =
    problem.kind === 'failed'
      ? problem.error
      : {
          message: trans.__('There is no command “/%1”.', problem.name),
          hint: trans.__('Nothing was sent.')
        };
  return (
    <div className="ocman-Composer-problem">
      <ErrorText error={error} />
      {problem.kind === 'failed' ? (
        <Button blocked={blocked} onClick={() => onSend(problem.asText)}>
          {trans.__('Retry')}
        </Button>
      ) : (
        <Button blocked={blocked} onClick={() => onSend(true)}>
          {trans.__('Send as text')}
        </Button>
      )}
    </div>
  );
}

function InsertCell(props: {
  insertCell: () => string | null;
  onInsert: (text: string) => void;
  trans: TranslationBundle;
}): JSX.Element {
  const { insertCell, onInsert, trans } = props;
  const [isMissing, setMissing] = React.useState(false);
  return (
    <>
      <IconButton
        icon={notebookIcon}
        label={trans.__('Insert selected cell')}
        onClick={() => {
          const cell = insertCell();
          setMissing(cell === null);
          if (cell !== null) {
            onInsert(cell);
          }
        }}
        onBlur={() => setMissing(false)}
      />
      <span className="ocman-Composer-note" role="status">
        {isMissing && trans.__('No notebook cell is selected.')}
      </span>
    </>
  );
}

function Stop(props: {
  model: OcmanModel;
  sessionKey: string;
  name: string;
  trans: TranslationBundle;
}): JSX.Element {
  const { model, sessionKey, name, trans } = props;
  const [isStopping, setStopping] = React.useState(false);
  const stop = async () => {
    setStopping(true);
    await model.abort(sessionKey);
    setStopping(false);
  };
  return (
    <Button
      mood="warn"
      blocked={isStopping || model.connection.phase !== 'live'}
      onClick={() => void stop()}
      aria-label={trans.__('Stop %1', name)}
    >
      {isStopping ? trans.__('Stopping…') : trans.__('Stop')}
    </Button>
  );
}
