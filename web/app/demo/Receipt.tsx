import { useEffect, useState } from 'react';
import { ReceiptChangedDocument, type ReceiptChangedSubscription } from '../generated';
import type { Installation } from './installation';

/** Who has read one message, as it fills. The server looks for that only while somebody asks. */
export function Receipt({ installation, channelId, seq, on }: { installation: Installation; channelId: string; seq: number; on: boolean }) {
  const [receipt, setReceipt] = useState<ReceiptChangedSubscription['receiptChanged']>();
  useEffect(() => {
    if (!on) return undefined;
    return installation.connection.follow(ReceiptChangedDocument, { channelId, seq }, {
      next: ({ receiptChanged }) => setReceipt(receiptChanged),
      error: () => setReceipt(undefined),
    });
  }, [installation, channelId, seq, on]);
  if (!receipt || receipt.audienceCount === 0) return null;
  const { readCount, audienceCount, allRead, readers } = receipt;
  return (
    <p className={allRead ? 'receipt all' : 'receipt'}>
      <progress max={audienceCount} value={readCount} aria-label="Read by" /> read by {readCount} of {audienceCount}
      {readers.nodes.length > 0 && `: ${readers.nodes.map(({ displayName }) => displayName).join(', ')}`}
    </p>
  );
}
