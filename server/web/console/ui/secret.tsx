// A secret that is shown once: `<SecretOnce title="Your new key" text="…" secret={key} copy="Copy key" onClose={…} />`.
//
// Neither Escape nor a click beside the dialog closes it, since nothing brings the secret back.

import { texts } from "../texts/en";
import { Button, Copy } from "./button";
import { Dialog } from "./dialog";

interface SecretProps {
  title: string;
  text: string;
  secret: string;
  /** Label of the button that copies it. */
  copy: string;
  onClose: () => void;
}

export function SecretOnce({ title, text, secret, copy, onClose }: SecretProps) {
  return (
    <Dialog title={title} onClose={onClose} closes={false}>
      <p class="lead">{text}</p>
      <p class="secret">
        <code>{secret}</code>
      </p>
      <div class="foot">
        <Copy text={secret} kind="primary" label={copy} />
        <Button onClick={onClose}>{texts.actions.stored}</Button>
      </div>
    </Dialog>
  );
}
