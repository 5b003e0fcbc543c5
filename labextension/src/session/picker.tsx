/**
 * A button that opens a list of choices with a filter, for lists that are too long for a menu.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { matching } from './completion';

export interface Choice {
  /** `null`: no choice of one's own. */
  readonly value: string | null;
  readonly name: string;
  /** What it stands under in the list. */
  readonly group: string;
}

interface Props {
  /** What is chosen: "Model". */
  label: string;
  value: string | null;
  choices: readonly Choice[];
  onChoose: (value: string | null) => void;
  trans: TranslationBundle;
}

/** More choices are reached by filtering. */
const MOST_SHOWN = 100;

export function Picker({ label, value, choices, onChoose, trans }: Props): JSX.Element {
  const [isOpen, setOpen] = React.useState(false);
  const button = React.useRef<HTMLButtonElement>(null);
  const chosen = choices.find(choice => choice.value === value);
  const name = chosen?.name ?? value ?? '';
  const close = (focus: boolean) => {
    setOpen(false);
    if (focus) {
      button.current?.focus();
    }
  };
  return (
    <div
      className="ocman-Picker"
      onBlur={event => {
        if (isOpen && !event.currentTarget.contains(event.relatedTarget)) {
          close(false);
        }
      }}
    >
      <button
        ref={button}
        type="button"
        className="ocman-Picker-button"
        aria-haspopup="listbox"
        aria-expanded={isOpen}
        aria-label={trans.__('%1: %2', label, name)}
        title={trans.__('%1: %2', label, name)}
        onClick={() => setOpen(!isOpen)}
      >
        <bdi>{name}</bdi>
      </button>
      {isOpen && (
        <PickerList
          label={label}
          value={value}
          choices={choices}
          trans={trans}
          onClose={() => close(true)}
          onChoose={chosen => {
            close(true);
            onChoose(chosen);
          }}
        />
      )}
    </div>
  );
}

function PickerList(props: Props & { onClose: () => void }): JSX.Element {
  const { label, value, choices, onChoose, onClose, trans } = props;
  const id = React.useId();
  const [query, setQuery] = React.useState('');
  const all = React.useMemo(
    () => matching(choices, query, ({ name, group }) => `${name} ${group}`),
    [choices, query]
  );
  const shown = React.useMemo(() => grouped(all.slice(0, MOST_SHOWN)), [all]);
  const [active, setActive] = React.useState(() =>
    Math.max(
      0,
      shown.findIndex(choice => choice.value === value)
    )
  );
  const list = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    list.current?.querySelector('[data-active]')?.scrollIntoView({ block: 'nearest' });
  }, [active, shown]);

  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.nativeEvent.isComposing) {
      return;
    }
    const count = shown.length;
    switch (event.key) {
      case 'ArrowDown':
        setActive(count && (active + 1) % count);
        break;
      case 'ArrowUp':
        setActive(count && (active + count - 1) % count);
        break;
      case 'Enter':
        if (shown[active]) {
          onChoose(shown[active].value);
        }
        break;
      case 'Escape':
        event.stopPropagation();
        onClose();
        break;
      default:
        return;
    }
    event.preventDefault();
  };

  return (
    <div className="ocman-Popup ocman-Picker-popup" onKeyDown={onKeyDown}>
      <input
        autoFocus
        type="text"
        className="ocman-Input"
        role="combobox"
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls={`${id}list`}
        aria-activedescendant={shown[active] ? `${id}${active}` : undefined}
        aria-label={trans.__('Filter: %1', label)}
        placeholder={trans.__('Filter…')}
        value={query}
        onChange={event => {
          setQuery(event.target.value);
          setActive(0);
        }}
      />
      <div ref={list} id={`${id}list`} className="ocman-Popup-list" role="listbox" aria-label={label}>
        {shown.map((choice, i) => (
          <React.Fragment key={choice.value ?? ''}>
            {choice.group && choice.group !== shown[i - 1]?.group && (
              <div className="ocman-Popup-group" role="presentation">
                <bdi>{choice.group}</bdi>
              </div>
            )}
            <div
              id={`${id}${i}`}
              className="ocman-Popup-item"
              role="option"
              aria-selected={choice.value === value}
              aria-label={choice.group ? trans.__('%1, %2', choice.name, choice.group) : choice.name}
              data-active={i === active || undefined}
              // The focus stays in the filter.
              onMouseDown={event => event.preventDefault()}
              onClick={() => onChoose(choice.value)}
            >
              <bdi>{choice.name}</bdi>
            </div>
          </React.Fragment>
        ))}
      </div>
      <div className="ocman-Popup-note" role="status">
        {!all.length
          ? trans.__('Nothing matches.')
          : all.length > shown.length
            ? trans.__('%1 more: type to find them.', all.length - shown.length)
            : ''}
      </div>
    </div>
  );
}

/** Those of one group together, the groups in the order in which they first come. */
function grouped(choices: readonly Choice[]): Choice[] {
  const groups = new Map<string, Choice[]>();
  for (const choice of choices) {
    const group = groups.get(choice.group);
    if (group) {
      group.push(choice);
    } else {
      groups.set(choice.group, [choice]);
    }
  }
  return [...groups.values()].flat();
}
