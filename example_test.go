package sluice_test

import (
	"context"
	"fmt"
	"log"

	"github.com/sluice-ai/sluice"
)

// The name is empty: the small model answers that is part of the package.
func Example() {
	ctx := context.Background()
	model, err := sluice.Open(ctx, "", sluice.Options{Context: 512})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	answer, err := model.Generate(ctx, sluice.Request{
		Messages:    []sluice.Message{sluice.User("What is the capital of France?")},
		Temperature: new(float32), // 0: the likeliest tokens
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text)
	// Output: The capital of France is Paris.
}

// A conversation is its messages so far, with the answers among them.
func ExampleModel_Generate() {
	ctx := context.Background()
	model, err := sluice.Open(ctx, "", sluice.Options{Context: 512})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	var talk []sluice.Message
	for _, question := range []string{"What is the capital of France?", "What is the capital of Japan?"} {
		talk = append(talk, sluice.User(question))
		answer, err := model.Generate(ctx, sluice.Request{Messages: talk, Temperature: new(float32)})
		if err != nil {
			log.Fatal(err)
		}
		talk = append(talk, sluice.Assistant(answer.Text))
		fmt.Println(answer.Text)
	}
	// Output:
	// The capital of France is Paris.
	// The capital of Japan is Tokyo.
}

// Pieces come as the model writes them. Leaving the loop ends the request.
func ExampleModel_Stream() {
	ctx := context.Background()
	model, err := sluice.Open(ctx, "", sluice.Options{Context: 512})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	question := sluice.Request{Messages: []sluice.Message{sluice.User("What is the capital of France?")}, Temperature: new(float32)}
	for piece, err := range model.Stream(ctx, question) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(piece.Text)
		if piece.Finish != "" {
			fmt.Printf("\nended by %s after %d tokens", piece.Finish, piece.Usage.Generated)
		}
	}
	// Output:
	// The capital of France is Paris.
	// ended by stop after 10 tokens
}

// An answer that has to fit a JSON Schema does.
func ExampleRequest_schema() {
	ctx := context.Background()
	model, err := sluice.Open(ctx, "", sluice.Options{Context: 512})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	answer, err := model.Generate(ctx, sluice.Request{
		Messages:    []sluice.Message{sluice.User("What is the capital of France?")},
		Schema:      `{"enum": ["Lyon", "Paris", "Nice"]}`,
		Temperature: new(float32),
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Text)
	// Output: "Paris"
}
