// Package capture reads the declared outputs of a job from the folder that it left behind, and makes a tree of each (07§80–82).
//
// A job may have left anything, on purpose or not: links to elsewhere, pipes that nobody writes, devices, names that are no
// text, files that say they hold a terabyte. What was not declared is not looked into. What was declared is either kept
// exactly or refused by name; nothing is left out in silence, and nothing outside of the output's base is ever opened.
//
//	base      patterns                    what is kept, in a tree that begins at the base
//	source    dist                        the folder dist with all that is in it
//	source    dist/**                     the same
//	source    **/*.xml                    these files, each in its folder
//	source    dist  !dist/cache  !**/*.o  dist without a folder and without some files
//	source    app                         a tree with one file
//
// A pattern decides about what it matches, and about all that is in a folder that it matches. Of several that decide about
// one thing the last in the list counts, so that what was taken away may be taken again. Words of a pattern: * and ? within
// a name, ** for any number of folders, [a-z], {this,that}, and a slash at the end for "only if it is a folder". A folder
// that a pattern matches is kept even while it is empty; one in which something was taken is kept for that.
//
// Of a file its bytes are kept and whether anybody may execute it; of a link its target, which must lead from where it is
// to something inside of the base, there or not. No link is followed. Owners, times and other modes are dropped.
//
// Take walks in the goroutine of its caller and reads files in a few of its own, all of which have ended when it returns. It
// decides nothing about when an output is wanted, uploads nothing, and keeps nothing of what it has read.
package capture
