// Package pktmon captures packets on the node with Windows' own pktmon.exe, and
// never leaves the node capturing.
//
// A machine has one packet monitor, with one session and one list of filters,
// and both outlive the program that made them. So a capture is owned by a
// guardian: the agent's executable as a one-shot auto-start service that
// removes itself at the end, like package swap's. The capture continues while
// the session holds a lock (layout.CaptureLock): the lock ends with the
// session's process, however that ends, and Windows reports that. Begin
// acquires the lock, writes the journal and starts the guardian; the guardian
// runs Guard:
//
//	prepared → filtering → starting → capturing → stopping → done
//
// It stops when the lock is free, when the capture's time is over, or when the
// machine shuts down. A guardian that finds a journal past its beginning has
// replaced one that was killed: it stops the capture, too. After a power cut
// nothing captures any more, and either the guardian, which the SCM starts at
// boot, or Heal at the next contact cleans up.
//
// The packets are files on the node until their session has fetched them; it
// holds them meanwhile (Keep). Packets that no session fetches are removed by
// the guardian after KeepFor, or by the next capture.
//
// Captures and filters of other programs are left alone: if there are any,
// swdt's capture is refused (Refused) unless the plan says to end them, and at
// its end they stay.
package pktmon
