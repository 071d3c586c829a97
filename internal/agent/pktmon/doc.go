// Package pktmon captures packets on the node with Windows' own pktmon.exe, and
// never leaves the node capturing.
//
// A machine has one packet monitor, which runs at most one capture and has one
// list of filters. Both remain when the program that set them up ends. So a
// capture is owned by a guardian: the agent's executable as a one-shot
// auto-start service that removes itself at the end, like the guardian of
// package swap. The capture continues while the agent's session holds a lock
// (layout.CaptureLock). Windows releases the lock when the session's process
// ends for any reason. Begin acquires the lock, writes the journal and starts
// the guardian; the guardian runs Guard:
//
//	prepared → filtering → starting → capturing → stopping → done
//
// The guardian stops the capture when the lock is free, when the capture's time is over, or when
// the machine shuts down. If a guardian starts and the journal shows that the capture had begun, an
// earlier guardian was killed. In this case, the new guardian stops the capture. After a power cut
// the packet monitor no longer captures; the guardian, which the SCM starts at boot, cleans up, or
// Heal does so at the next contact.
//
// The packets stay in files on the node until their session has fetched them.
// The session holds the files while it fetches them (Keep). If no session
// fetches the packets, the guardian removes them after KeepFor, or the next
// capture does.
//
// Captures and filters of other programs are left alone. If there are any,
// swdt's capture is refused (Refused) unless the plan says to end them. The end
// of swdt's capture does not change them.
package pktmon
