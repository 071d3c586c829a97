// Package swap replaces the binaries of a node's components as one transaction,
// on the node itself.
//
// A transaction is a journal (layout.Journals) and a guardian. Begin checks the
// plan, writes the journal and starts the guardian: the agent's executable as a
// one-shot auto-start service, so that neither a dropped connection, nor a
// killed agent, nor a reboot ends the work. The guardian runs Guard:
//
//	prepared → stopping → swapping → starting → checking → committing → done
//	      any failure → rollingBack → done
//
// A record of the state waiting is about a file that another program holds: before the first stop the transaction waits
// for it while everything runs, after the stop for some seconds, and an undo waits for as long as its process lives.
//
// Each record is on the disk before the announced action begins. So any swdt
// that reads a journal without the record done can finish the work: it undoes
// an incomplete swap, and starts and checks a complete one. Every action can be
// repeated safely, because it depends on which files exist, not on the
// intention that the journal records.
//
// Files of a component, all in the destination's folder and so on one volume:
//
//	kubelet.exe                the live binary
//	kubelet.exe.swdt-<hash>    the new one, staged while the old one runs
//	kubelet.exe.swdt-undo      the old one, from its rename until the commit
//	kubelet.exe.swdt-old       the previous one, kept for a rollback by hand
//	kubelet.exe.swdt-stale-<id>  a file that had one of these names, and was
//	                             renamed when the name was needed: a program
//	                             still ran it, or another account made it
//
// On Windows a running executable can be renamed but not replaced, so each swap consists of two
// renames. A power cut between the two renames leaves no file at the destination. The SCM starts
// the guardian at the next boot, and the guardian renames the old or the new binary to the
// destination.
package swap
