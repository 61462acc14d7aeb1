package org.example.words;

/** Prints how often the arguments have each word. */
public final class Main {
    private Main() {}

    /** Prints a line for each word. */
    public static void main(String[] args) {
        Words.count(String.join(" ", args)).forEach((word, n) -> System.out.println(n + " " + word));
    }
}
