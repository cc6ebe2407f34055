// A choice of a few, side by side: `<Tabs label="Language" names={["curl", "Node"]} chosen="curl" onChoose={…} />`.

export function Tabs<Name extends string>({
  label,
  names,
  chosen,
  onChoose,
  text = (name) => name,
}: {
  label: string;
  names: readonly Name[];
  chosen: Name;
  onChoose: (name: Name) => void;
  text?: (name: Name) => string;
}) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {names.map((name) => (
        <button key={name} type="button" aria-pressed={name === chosen} onClick={() => onChoose(name)}>
          {text(name)}
        </button>
      ))}
    </div>
  );
}
