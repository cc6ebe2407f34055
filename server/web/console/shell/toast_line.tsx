// Where the last thing done is said, for eyes and for screen readers.

import { toast } from "../state/toast";
import { texts } from "../texts/en";

export function ToastLine() {
  const shown = toast.value;
  return (
    <div class="toast-line" role="status">
      {shown && (
        <p class="toast">
          {shown.text}
          {shown.undo && (
            <button
              type="button"
              onClick={() => {
                shown.undo?.();
                toast.value = null;
              }}
            >
              {texts.actions.undo}
            </button>
          )}
        </p>
      )}
    </div>
  );
}
