/**
 * Which agent and which model the next prompts of a session go to.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { KnownSession } from '../state';
import { SessionChoices } from './completion';
import { Choice, Picker } from './picker';

export function Pickers(props: {
  session: KnownSession | null;
  choices: SessionChoices;
  agent: string | null;
  chosen: string | null;
  onChange: (chosen: { agent: string | null } | { model: string | null }) => void;
  trans: TranslationBundle;
}): JSX.Element | null {
  const { session, choices, agent, chosen, onChange, trans } = props;
  const options = choices.value;
  // What goes on as it was is shown too: it is what the next prompt will have.
  const agentNow = agent ?? session?.agent ?? null;
  const modelNow = chosen ?? session?.model ?? options?.default_model ?? null;
  const models = React.useMemo(() => {
    const found: Choice[] = (options?.models ?? []).map(({ id, name, provider }) => ({
      value: id,
      name,
      group: provider
    }));
    return modelNow === null
      ? [{ value: null, name: trans.__('Default model'), group: '' }, ...found]
      : found;
  }, [options, modelNow === null, trans]);
  if (!options) {
    return choices.error ? (
      <button
        type="button"
        className="ocman-LinkButton"
        title={choices.error.message}
        onClick={() => void choices.load().catch(() => undefined)}
      >
        {trans.__('Agents and models are not known: try again')}
      </button>
    ) : null;
  }
  const agents = options.agents.map(({ name }) => name);
  return (
    <>
      <select
        className="ocman-Select"
        aria-label={trans.__('Agent')}
        title={options.agents.find(({ name }) => name === agentNow)?.description ?? trans.__('Agent')}
        value={agentNow ?? ''}
        onChange={event => onChange({ agent: event.target.value || null })}
      >
        {agentNow === null && <option value="">{trans.__('Default agent')}</option>}
        {/* One that is gone is still what would be sent. */}
        {(agentNow && !agents.includes(agentNow) ? [...agents, agentNow] : agents).map(name => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <Picker
        label={trans.__('Model')}
        value={modelNow}
        choices={models}
        onChoose={value => onChange({ model: value })}
        trans={trans}
      />
    </>
  );
}
