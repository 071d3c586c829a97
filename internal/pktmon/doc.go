// Package pktmon captures packets on the node with Windows' own pktmon.exe, and
// never leaves the node capturing.
//
// There is one packet monitor on a machine, with one session and one list of
// filters, and both outlive whoever made them. So a capture is owned by a
// guardian: the agent's executable as a one-shot auto-start service that removes
// itself at the end, as package swap's. What keeps it going is a lock that the
// session holds (layout.CaptureLock): it ends with the session's process, however
// that ends, and Windows tells. Begin takes the lock, writes the journal and
// starts the guardian; Guard is what the guardian runs:
//
//	prepared → filtering → starting → capturing → stopping → done
//
// It stops when the lock is free, when the capture's time is over, or when the
// machine shuts down. A guardian that finds a journal which is not at its
// beginning has followed one that was killed: it stops, too. After a power cut
// nothing captures any more, and the guardian, which the SCM starts at boot, or
// Heal at the next contact, clears away.
//
// The packets are files on the node until their session has fetched them, which it
// holds meanwhile (Keep). Those that no session fetches are removed by the guardian
// after KeepFor, or by the next capture.
//
// What is not ours is left alone: a capture that somebody else runs, or filters
// that somebody else made, refuse ours (Refused) unless it was told to end them,
// and are not touched at its end.
package pktmon
