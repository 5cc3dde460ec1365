// Package paint has the commands that make pictures: upscale.
package paint
