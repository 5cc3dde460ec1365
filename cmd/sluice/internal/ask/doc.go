// Package ask has the commands that ask a model something: run, chat, embed.
package ask
