package rand
