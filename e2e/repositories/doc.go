// Package repositories has ten small repositories in the shape of real ones, each with the pipeline that its authors would
// write, and tests that run them as a stranger does: copied into a folder of its own, with a history of git, "forgeyard
// run", without a server and against a daemon with two agents. What they keep is fetched and compared.
//
// Packages come over the ordinary clients of this machine. A repository whose tools this machine has not is skipped, and
// the skip names the tool.
package repositories
